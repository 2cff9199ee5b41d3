// SPDX-License-Identifier: Apache-2.0
// The controller's logic for Python: requests and cycles of test_both_doors.py.
#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "../support/settings_from_numbers.hpp"
#include "robodyn_controllers/controller_logic.hpp"

using robodyn::Vector;
using robodyn_controllers::ControllerLogic;
using robodyn_controllers::Settings;

namespace
{

struct Door
{
  ControllerLogic logic{std::chrono::minutes(1)};
  const robodyn_model * model = nullptr;
  std::string answer;

  const char * say(const std::string & words)
  {
    answer = words;
    return answer.c_str();
  }
};

Settings settings_of(const double * numbers)
{
  return settings_from_numbers([&numbers] { return *numbers++; });
}

}  // namespace

extern "C" {

Door * door_open(const robodyn_model * model, const double * numbers)
{
  auto * const door = new Door;
  door->model = model;
  const Vector scale(static_cast<std::size_t>(model->joints), 1.0);
  door->logic.configure({std::shared_ptr<void>(), model}, settings_of(numbers), {}, scale);
  return door;
}

void door_close(Door * door)
{
  delete door;
}

void door_activate(Door * door)
{
  door->logic.activate();
}

int door_deactivate(Door * door, double * command)
{
  return door->logic.deactivate(command);
}

int door_update(
  Door * door, double period, const double * position, const double * velocity,
  const double * reference, double * command)
{
  // A null reference: nothing is chained, and setpoints come by set_setpoint.
  Vector setpoint(3 * static_cast<std::size_t>(door->model->joints));
  if (reference == nullptr) { door->logic.sample_setpoint(period, setpoint.data()); }
  const double * const given = reference == nullptr ? setpoint.data() : reference;
  return door->logic.update(period, position, velocity, given, command);
}

const char * door_change(Door * door, const double * numbers)
{
  door->logic.change_settings([numbers](const robodyn_model &) { return settings_of(numbers); });
  return "";
}

const char * door_enable(Door * door, int is_enabled)
{
  return door->say(door->logic.set_enabled(is_enabled != 0));
}

const char * door_cancel(Door * door)
{
  return door->say(door->logic.cancel());
}

const char * door_payload(Door * door, const char * link, const robodyn_payload * payload)
{
  return door->say(door->logic.set_payload(link, *payload));
}

const char * door_gravity(Door * door, const char * frame, const double * gravity)
{
  return door->say(door->logic.set_gravity(frame, {gravity, gravity + 3}));
}

const char * door_setpoint(Door * door, int count, const char ** names, const double * positions)
{
  return door->say(
    door->logic.set_setpoint({names, names + count}, {positions, positions + count}, {}, {}));
}

const char * door_pose(Door * door, const char * frame, const double * pose)
{
  return door->say(door->logic.set_target_pose(
    frame, {pose[0], pose[1], pose[2]}, {pose[3], pose[4], pose[5], pose[6]}));
}

const char * door_wrench(Door * door, const char * frame, const double * wrench)
{
  robodyn::Vector6 given;
  std::copy_n(wrench, 6, given.begin());
  return door->say(door->logic.set_target_wrench(frame, given));
}

const char * door_weigh(Door * door)
{
  return door->say(door->logic.weigh());
}

// What the last cycle refused, in words.
const char * door_refused(Door * door)
{
  for (const robodyn::Fault & refusal :
       {door->logic.take_refused_setpoint(), door->logic.take_refused_target(),
        door->logic.take_refused_wrench()}) {
    if (refusal) { return door->say(door->logic.text_of(refusal)); }
  }
  return "";
}

// The fault that is not acknowledged, in words.
const char * door_fault(Door * door)
{
  return door->say(door->logic.text_of(door->logic.pipeline().last_fault()));
}
}
