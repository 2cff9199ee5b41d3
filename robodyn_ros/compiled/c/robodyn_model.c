/* The common part of every arm's library, after data and kernels: payload check, self-test. */

/* The same check as payload.py. */
static int is_body(const robodyn_payload * payload)
{
  const double * const J = payload->inertia;
  double size = 0.0, sum = payload->mass, moments[3];
  for (int k = 0; k < 6; k++) {
    sum += J[k];
    if (fabs(J[k]) > size) size = fabs(J[k]);
  }
  for (int k = 0; k < 3; k++) sum += payload->center_of_mass[k];
  if (!isfinite(sum) || payload->mass < 0.0) return 0;
  if (size == 0.0) return 1;
  robodyn_principal_moments(J, moments);
  return payload->mass > 0.0 && moments[0] >= -1e-9 * size &&
         moments[2] <= (moments[0] + moments[1]) * (1.0 + 1e-6) + 1e-12 * size;
}

static int make_load(const robodyn_payload * payload, const double * given_gravity, double * load)
{
  const double * const g = given_gravity ? given_gravity : gravity;
  if (!isfinite(g[0] + g[1] + g[2]) || (payload && !is_body(payload))) return -1;
  const double x = g[0], y = g[1], z = g[2];
  for (int k = 0; k < 3; k++)
    load[k] = x * gravity_map[k] + y * gravity_map[3 + k] + z * gravity_map[6 + k];
  for (int k = 0; k < VARYING; k++) load[3 + k] = unloaded[k];
  if (!payload || payload->mass == 0.0) return 0;
  const double m = payload->mass, *const c = payload->center_of_mass, *const J = payload->inertia;
  const double parameters[10] = {/* about the tip link's origin */
                                 J[0] + m * (c[1] * c[1] + c[2] * c[2]),
                                 J[1] - m * c[0] * c[1],
                                 J[2] - m * c[0] * c[2],
                                 J[3] + m * (c[0] * c[0] + c[2] * c[2]),
                                 J[4] - m * c[1] * c[2],
                                 J[5] + m * (c[0] * c[0] + c[1] * c[1]),
                                 m * c[0],
                                 m * c[1],
                                 m * c[2],
                                 m};
  for (int row = 0; row < 10; row++)
    for (int k = 0; k < VARYING; k++)
      load[3 + k] += parameters[row] * payload_map[row * VARYING + k];
  return 0;
}

static void friction_torque(
  const double * qd, const double * direction, const double * rigid_torque, double * tau)
{
  arm_directed_friction_torque(NULL, qd, direction, rigid_torque, tau);
}

static void forward_kinematics(const double * q, double * result)
{
  arm_forward_kinematics(NULL, q, result);
}

static void jacobian(const double * q, double * result)
{
  arm_jacobian(NULL, q, result);
}

static int differs(const double * found, const double * expected, int size)
{
  double scale = 1.0, difference = 0.0;
  for (int k = 0; k < size; k++) scale = fmax(scale, fabs(expected[k]));
  for (int k = 0; k < size; k++) {
    if (!isfinite(found[k])) return 1;
    difference = fmax(difference, fabs(found[k] - expected[k]));
  }
  return difference > 1e-9 * scale;
}

static int self_test(void)
{
  enum { SQUARE = JOINTS * JOINTS };
  enum { JACOBIAN = 6 * JOINTS, MOST = SQUARE < 16 ? 16 : SQUARE };
  double load[2][LOAD], found[MOST < JACOBIAN ? JACOBIAN : MOST];
  const double *const torques[] = {torque, loaded_torque},
                      *const gravities[] = {gravity_at, loaded_gravity_at},
                      *const masses[] = {mass, loaded_mass};
  int wrong = make_load(NULL, NULL, load[0]) != 0;
  wrong += make_load(&test_payload, test_gravity, load[1]) != 0;
  for (int i = 0; i < STATES; i++) {
    const double *const q = q_at + i * JOINTS, *const qd = qd_at + i * JOINTS,
                        *const qdd = qdd_at + i * JOINTS;
    for (int k = 0; k < 2; k++) {
      arm_inverse_dynamics(load[k], q, qd, qdd, found);
      wrong += differs(found, torques[k] + i * JOINTS, JOINTS);
      arm_gravity_torque(load[k], q, found);
      wrong += differs(found, gravities[k] + i * JOINTS, JOINTS);
      arm_mass_matrix(load[k], q, found);
      wrong += differs(found, masses[k] + i * SQUARE, SQUARE);
    }
    friction_torque(qd, direction + i * (JOINTS + COUPLED), torque + i * JOINTS, found);
    wrong += differs(found, friction + i * JOINTS, JOINTS);
    forward_kinematics(q, found);
    wrong += differs(found, pose + i * 16, 16);
    jacobian(q, found);
    wrong += differs(found, jacobian_at + i * JACOBIAN, JACOBIAN);
  }
  return wrong;
}

#if defined __GNUC__
__attribute__((visibility("default")))
#endif
const robodyn_model *
robodyn_model_v3(void)
{
  static const robodyn_model model = {
    ROBODYN_MODEL_ABI,
    JOINTS,
    COUPLED,
    coupling,
    LOAD,
    generator,
    joint_names,
    base_link,
    tip_link,
    kinematics,
    is_prismatic,
    position_limits,
    velocity_limits,
    effort_limits,
    possible_positions,
    gravity,
    STRONGEST_GRAVITY,
    HEAVIEST_PAYLOAD,
    LARGEST_PAYLOAD,
    REACH,
    make_load,
    arm_inverse_dynamics,
    arm_gravity_torque,
    arm_mass_matrix,
    friction_torque,
    forward_kinematics,
    jacobian,
    self_test};
  return &model;
}
