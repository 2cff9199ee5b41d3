// SPDX-License-Identifier: Apache-2.0
// Pinocchio's functions, the code that it generates by CasADi, and ours, called from C++.
//
//   cpp_calls generate URDF NAME          write NAME.c
//   cpp_calls time URDF LIBRARY CODE EXPORTED ROUNDS
//
// URDF: an arm fixed to its root, without joints that turn without end. LIBRARY: of `robodyn export
// --shared`; CODE: NAME.c compiled; EXPORTED: what export_c writes, compiled. Prints nanoseconds per
// call: the fastest round counts, and each call has another state. A result that differs ends it.
#include <pinocchio/autodiff/casadi.hpp>

#include <dlfcn.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <initializer_list>
#include <iostream>
#include <map>
#include <pinocchio/algorithm/crba.hpp>
#include <pinocchio/algorithm/rnea.hpp>
#include <pinocchio/parsers/urdf.hpp>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "robodyn_ros/robodyn_model.h"

namespace
{

using casadi::SX;
using Vector = Eigen::VectorXd;

constexpr std::size_t kStates = 16;  // that calls take turns with
constexpr int kCalls = 2000;         // of a round
constexpr double kTolerance = 1e-9;  // of the largest number

pinocchio::Model read(const std::string & urdf)
{
  pinocchio::Model model;
  pinocchio::urdf::buildModel(urdf, model);
  return model;
}

// Write Pinocchio's algorithms for an arm, each traced by CasADi, as C.
void generate(const std::string & urdf, const std::string & name)
{
  const auto model = read(urdf).cast<SX>();
  pinocchio::DataTpl<SX> data(model);
  using Symbols = Eigen::Matrix<SX, Eigen::Dynamic, 1>;
  std::vector<SX> given;
  std::vector<Symbols> symbols;
  for (const char * const each : {"q", "qd", "qdd"}) {
    given.push_back(SX::sym(each, model.nv));
    symbols.emplace_back(model.nv);
    pinocchio::casadi::copy(given.back(), symbols.back());
  }
  const auto written = [](const auto & matrix) {
    SX result(casadi::Sparsity::dense(matrix.rows(), matrix.cols()));
    pinocchio::casadi::copy(matrix, result);
    return result;
  };
  casadi::CodeGenerator code(name);
  const SX torque = written(pinocchio::rnea(model, data, symbols[0], symbols[1], symbols[2]));
  code.add(casadi::Function("inverse_dynamics", given, {torque}));
  const SX gravity = written(pinocchio::computeGeneralizedGravity(model, data, symbols[0]));
  code.add(casadi::Function("gravity_torque", {given[0]}, {gravity}));
  pinocchio::crba(model, data, symbols[0], pinocchio::Convention::WORLD);
  data.M.triangularView<Eigen::StrictlyLower>() = data.M.transpose();
  code.add(casadi::Function("mass_matrix", {given[0]}, {written(data.M)}));
  code.generate();
}

void * opened(const char * library)
{
  void * const found = dlopen(library, RTLD_NOW | RTLD_LOCAL);
  if (found == nullptr) { throw std::runtime_error(dlerror()); }
  return found;
}

template <typename Function>
Function * symbol(void * library, const std::string & name)
{
  void * const found = dlsym(library, name.c_str());
  if (found == nullptr) { throw std::runtime_error(dlerror()); }
  return reinterpret_cast<Function *>(found);
}

// A function of CasADi's code with its memory; arguments and result are dense.
struct Generated
{
  using Work = int(long long *, long long *, long long *, long long *);
  using Call = int(const double **, double **, long long *, double *, int);

  Generated(void * library, const std::string & name) : call(symbol<Call>(library, name))
  {
    long long sizes[4];
    symbol<Work>(library, name + "_work")(&sizes[0], &sizes[1], &sizes[2], &sizes[3]);
    arguments.resize(static_cast<std::size_t>(sizes[0]));
    results.resize(static_cast<std::size_t>(sizes[1]));
    integers.resize(static_cast<std::size_t>(sizes[2]));
    numbers.resize(static_cast<std::size_t>(sizes[3]));
  }

  void operator()(std::initializer_list<const double *> given, double * result)
  {
    std::copy(given.begin(), given.end(), arguments.begin());
    results[0] = result;
    call(arguments.data(), results.data(), integers.data(), numbers.data(), 0);
  }

  Call * call;
  std::vector<const double *> arguments;
  std::vector<double *> results;
  std::vector<long long> integers;
  std::vector<double> numbers;
};

struct State
{
  Vector q, qd, qdd;
};

// Writes the result of a state, and says whose it is.
struct Competitor
{
  std::string name;
  std::function<void(const State &, double *)> call;
};

double nanoseconds(const Competitor & one, const std::vector<State> & states, Vector & result)
{
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  for (int k = 0; k < kCalls; ++k) {
    one.call(states[static_cast<std::size_t>(k) % states.size()], result.data());
  }
  return std::chrono::duration<double, std::nano>(Clock::now() - begin).count() / kCalls;
}

void time(int rounds, const pinocchio::Model & model, char ** files)
{
  using OfState = void(const double *, const double *, const double *, double *);
  using OfPosition = void(const double *, double *);
  const auto * const ours =
    symbol<const robodyn_model *()>(opened(files[0]), ROBODYN_MODEL_SYMBOL)();
  void * const code = opened(files[1]);
  void * const exported = opened(files[2]);
  std::vector<double> load(static_cast<std::size_t>(ours->load_size));
  ours->make_load(nullptr, nullptr, load.data());
  pinocchio::Data data(model);
  Generated torque(code, "inverse_dynamics"), gravity(code, "gravity_torque");
  Generated mass(code, "mass_matrix");
  auto * const our_torque = symbol<OfState>(exported, "arm_inverse_dynamics");
  auto * const our_gravity = symbol<OfPosition>(exported, "arm_gravity_torque");
  auto * const our_mass = symbol<OfPosition>(exported, "arm_mass_matrix");
  const auto n = model.nv;
  const auto keep = [](const auto & from, double * to) {
    Eigen::Map<Eigen::MatrixXd>(to, from.rows(), from.cols()) = from;
  };

  const std::map<std::string, std::vector<Competitor>> functions{
    {"inverse dynamics",
     {{"pinocchio",
       [&](const State & s, double * to) {
         keep(pinocchio::rnea(model, data, s.q, s.qd, s.qdd), to);
       }},
      {"code",
       [&](const State & s, double * to) {
         torque({s.q.data(), s.qd.data(), s.qdd.data()}, to);
       }},
      {"export_c",
       [&](const State & s, double * to) {
         our_torque(s.q.data(), s.qd.data(), s.qdd.data(), to);
       }},
      {"library",
       [&](const State & s, double * to) {
         ours->inverse_dynamics(load.data(), 1, s.q.data(), s.qd.data(), s.qdd.data(), to);
       }}}},
    {"gravity torque",
     {{"pinocchio",
       [&](const State & s, double * to) {
         keep(pinocchio::computeGeneralizedGravity(model, data, s.q), to);
       }},
      {"code", [&](const State & s, double * to) { gravity({s.q.data()}, to); }},
      {"export_c", [&](const State & s, double * to) { our_gravity(s.q.data(), to); }},
      {"library",
       [&](const State & s, double * to) {
         ours->gravity_torque(load.data(), s.q.data(), to);
       }}}},
    {"mass matrix",
     {{"pinocchio",
       [&](const State & s, double * to) {
         pinocchio::crba(model, data, s.q, pinocchio::Convention::WORLD);
         data.M.triangularView<Eigen::StrictlyLower>() = data.M.transpose();
         keep(data.M, to);
       }},
      {"code", [&](const State & s, double * to) { mass({s.q.data()}, to); }},
      {"export_c", [&](const State & s, double * to) { our_mass(s.q.data(), to); }},
      {"library",
       [&](const State & s, double * to) { ours->mass_matrix(load.data(), s.q.data(), to); }}}},
  };

  std::vector<State> states(kStates);
  for (State & each : states) {
    each = {2.0 * Vector::Random(n), 2.0 * Vector::Random(n), 2.0 * Vector::Random(n)};
  }
  Vector wanted(n * n), result(n * n);
  for (const auto & [function, competitors] : functions) {
    for (const State & each : states) {
      wanted.setZero();
      competitors.front().call(each, wanted.data());
      for (const Competitor & one : competitors) {
        result.setZero();
        one.call(each, result.data());
        const double off = (result - wanted).lpNorm<Eigen::Infinity>();
        if (!(off <= kTolerance * wanted.lpNorm<Eigen::Infinity>())) {
          throw std::runtime_error(one.name + ", " + function + ": another result");
        }
      }
    }
    std::map<std::string, double> fastest;
    for (int k = 0; k < rounds; ++k) {
      for (const Competitor & one : competitors) {
        const double taken = nanoseconds(one, states, result);
        const auto known = fastest.emplace(one.name, taken).first;
        known->second = std::min(known->second, taken);
      }
    }
    for (const Competitor & one : competitors) {
      std::cout << function << ',' << one.name << ',' << fastest[one.name] << '\n';
    }
  }
}

}  // namespace

int main(int count, char ** words)
{
  try {
    if (count == 4) {
      generate(words[2], words[3]);
    } else if (count == 7) {
      time(std::stoi(words[6]), read(words[2]), words + 3);
    } else {
      return 2;
    }
  } catch (const std::exception & error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
