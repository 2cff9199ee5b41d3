/* The common part of every arm's library, after data and kernels: loads, self-test. */

static robodyn_refusal make_load(
  const robodyn_payload * payload, const double * given_gravity, double * load)
{
  const double * const g = given_gravity ? given_gravity : gravity;
  const robodyn_refusal refusal =
    robodyn_check_load(payload, g, HEAVIEST_PAYLOAD, LARGEST_PAYLOAD);
  if (refusal.element) return refusal;
  if (payload && (payload->tip < 0 || payload->tip >= TIPS)) {
    const robodyn_refusal no_tip = {"payload tip", "", payload->tip, TIPS - 1, ", from 0 on"};
    return no_tip;
  }
  const double x = g[0], y = g[1], z = g[2];
  for (int k = 0; k < 3; k++)
    load[k] = x * gravity_map[k] + y * gravity_map[3 + k] + z * gravity_map[6 + k];
  for (int k = 0; k < VARYING; k++) load[3 + k] = unloaded[k];
  if (!payload || payload->mass == 0.0) return refusal;
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
      load[3 + k] += parameters[row] * payload_map[(10 * payload->tip + row) * VARYING + k];
  return refusal;
}

static void inverse_dynamics(
  const double * load, int rows, const double * q, const double * qd, const double * qdd,
  double * tau)
{
#ifdef LANES
  const double * const in[] = {q, qd, qdd};
  inverse_dynamics_many(load, rows, in, &tau);
#else
  for (const double * const end = q + rows * JOINTS; q < end;
       q += JOINTS, qd += JOINTS, qdd += JOINTS, tau += JOINTS) {
    const double * const in[] = {q, qd, qdd};
    inverse_dynamics_one(load, in, &tau);
  }
#endif
}

static void gravity_torque(const double * load, const double * q, double * tau)
{
  gravity_torque_one(load, &q, &tau);
}

static void mass_matrix(const double * load, const double * q, double * result)
{
  mass_matrix_one(load, &q, &result);
}

static void friction_torque(
  const double * qd, const double * direction, const double * rigid_torque, double * tau)
{
  const double * const in[] = {qd, direction, rigid_torque};
  directed_friction_torque_one(NULL, in, &tau);
}

/* The kernels compute all tips: of several, one is copied. */
static void forward_kinematics(int tip, const double * q, double * result)
{
  double all[TIPS * 16], *to = TIPS > 1 ? all : result;
  forward_kinematics_one(NULL, &q, &to);
  for (int k = 0; TIPS > 1 && k < 16; k++) result[k] = all[16 * tip + k];
}

static void jacobian(int tip, const double * q, double * result)
{
  double all[TIPS * 6 * JOINTS], *to = TIPS > 1 ? all : result;
  jacobian_one(NULL, &q, &to);
  for (int k = 0; TIPS > 1 && k < 6 * JOINTS; k++) result[k] = all[6 * JOINTS * tip + k];
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
  int wrong = make_load(NULL, NULL, load[0]).element != NULL;
  wrong += make_load(&test_payload, test_gravity, load[1]).element != NULL;
  for (int i = 0; i < STATES; i++) {
    const double *const q = q_at + i * JOINTS, *const qd = qd_at + i * JOINTS,
                        *const qdd = qdd_at + i * JOINTS;
    for (int k = 0; k < 2; k++) {
      inverse_dynamics(load[k], 1, q, qd, qdd, found);
      wrong += differs(found, torques[k] + i * JOINTS, JOINTS);
      gravity_torque(load[k], q, found);
      wrong += differs(found, gravities[k] + i * JOINTS, JOINTS);
      mass_matrix(load[k], q, found);
      wrong += differs(found, masses[k] + i * SQUARE, SQUARE);
    }
    friction_torque(qd, direction + i * (JOINTS + COUPLED), torque + i * JOINTS, found);
    wrong += differs(found, friction + i * JOINTS, JOINTS);
    for (int tip = 0; tip < TIPS; tip++) {
      forward_kinematics(tip, q, found);
      wrong += differs(found, pose + (i * TIPS + tip) * 16, 16);
      jacobian(tip, q, found);
      wrong += differs(found, jacobian_at + (i * TIPS + tip) * JACOBIAN, JACOBIAN);
    }
  }
  return wrong;
}

#if defined __GNUC__
__attribute__((visibility("default")))
#endif
const robodyn_model *
robodyn_model_v5(void)
{
  static const robodyn_model model = {
    ROBODYN_MODEL_ABI,
    JOINTS,
    COUPLED,
    coupling,
    LOAD,
    generator,
    joint_names,
    UNMODELLED,
    unmodelled_joints,
    base_link,
    TIPS,
    tip_links,
    0,
    kinematics,
    is_prismatic,
    position_limits,
    velocity_limits,
    effort_limits,
    possible_positions,
    gravity,
    REACH,
    make_load,
    inverse_dynamics,
    gravity_torque,
    mass_matrix,
    friction_torque,
    forward_kinematics,
    jacobian,
    self_test};
  return &model;
}
