// SPDX-License-Identifier: Apache-2.0
// Loads and checks a shared library of robodyn export --shared. Not for the real-time loop.
#ifndef ROBODYN_CONTROLLERS__MODEL_LIBRARY_HPP_
#define ROBODYN_CONTROLLERS__MODEL_LIBRARY_HPP_

#include <dlfcn.h>
#include <sys/stat.h>
#include <unistd.h>

#include <climits>
#include <cstdlib>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "robodyn_ros/robodyn_model.h"

namespace robodyn_controllers
{

// Return the path of a library without links; throws std::runtime_error where it is not absolute, no
// file, or a user other than this process's and root may write it, or a folder that leads to it.
// Loading it runs it.
inline std::string private_path(const std::string & path)
{
  const std::string element = "model_library '" + path + "'";
  if (path.empty() || path.front() != '/') {
    throw std::runtime_error(element + "; allowed: an absolute path");
  }
  char resolved[PATH_MAX];
  if (realpath(path.c_str(), resolved) == nullptr) {
    throw std::runtime_error(element + "; allowed: the path of a file that is there");
  }
  const std::string file = resolved;
  for (std::size_t end = 1; end <= file.size(); ++end) {
    if (end > 1 && end < file.size() && file[end] != '/') { continue; }
    const std::string part = file.substr(0, end);
    const bool is_file = end == file.size();
    struct stat status = {};
    if (stat(part.c_str(), &status) != 0 || (is_file && !S_ISREG(status.st_mode))) {
      throw std::runtime_error(element + ": '" + part + "'; allowed: a regular file");
    }
    if (status.st_uid != 0 && status.st_uid != geteuid()) {
      throw std::runtime_error(
        element + ": '" + part + "' belongs to user " + std::to_string(status.st_uid) +
        "; allowed: root and user " + std::to_string(geteuid()));
    }
    // In a folder with the sticky bit, as /tmp, nobody replaces what belongs to another.
    const bool is_sticky = !is_file && (status.st_mode & S_ISVTX) != 0;
    if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0 && !is_sticky) {
      throw std::runtime_error(
        element + ": others may write '" + part +
        "'; allowed: root and the user alone (chmod go-w)");
    }
  }
  return file;
}

class ModelLibrary
{
public:
  // Throws std::runtime_error: no such library, one that others may write, another version of the
  // interface, or a failed self-test.
  explicit ModelLibrary(const std::string & path)
  : handle_(dlopen(private_path(path).c_str(), RTLD_NOW | RTLD_LOCAL), close)
  {
    if (handle_ == nullptr) {
      throw std::runtime_error("model_library: " + std::string(dlerror()));
    }
    using Function = const robodyn_model * (*)();
    const auto function = reinterpret_cast<Function>(dlsym(handle_.get(), ROBODYN_MODEL_SYMBOL));
    if (function == nullptr) {
      throw std::runtime_error(
        "model_library '" + path +
        "' has no " ROBODYN_MODEL_SYMBOL
        ": make it with the "
        "robodyn export --shared of this version");
    }
    const robodyn_model * const found = function();
    if (found == nullptr || found->abi != ROBODYN_MODEL_ABI || found->joints <= 0) {
      throw std::runtime_error("model_library '" + path + "' is of another version");
    }
    model_ = *found;
    const int wrong = model_.self_test();
    if (wrong != 0) {
      throw std::runtime_error(
        "model_library '" + path + "': " + std::to_string(wrong) +
        " results of its self-test are wrong; make it again on this computer");
    }
  }

  // Throws for other joints or another order, too.
  ModelLibrary(const std::string & path, const std::vector<std::string> & joints)
  : ModelLibrary(path)
  {
    const std::vector<std::string> names = joint_names();
    if (names != joints) {
      throw std::runtime_error(
        "joints: " + listed(joints) +
        "; allowed: those of model_library in its order: " + listed(names));
    }
  }

  const robodyn_model & model() const { return model_; }

  // Which of its tip links is meant where none is named.
  void choose_tip(int tip) { model_.tip = tip; }

  std::vector<std::string> joint_names() const
  {
    return {model_.joint_names, model_.joint_names + model_.joints};
  }

  // The names that a setpoint may have beside those of the joints, as text; "none" where there are none.
  std::string unmodelled_joints() const
  {
    return listed({model_.unmodelled_joints, model_.unmodelled_joints + model_.unmodelled});
  }

private:
  static void close(void * handle)
  {
    if (handle != nullptr) { dlclose(handle); }
  }

  static std::string listed(const std::vector<std::string> & names)
  {
    std::string text;
    for (const std::string & name : names) { text += (text.empty() ? "" : ", ") + name; }
    return text.empty() ? "none" : text;
  }

  std::unique_ptr<void, void (*)(void *)> handle_;
  robodyn_model model_{};
};

}  // namespace robodyn_controllers

#endif  // ROBODYN_CONTROLLERS__MODEL_LIBRARY_HPP_
