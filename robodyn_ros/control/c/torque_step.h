/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The torque of one control cycle: control law, soft joint limits, effort clip and rate limit.
 *
 * Plain C that C++ takes, too. No allocation, no state, nothing that waits; SI units, arrays in
 * chain order. It computes what computed_torque.py, soft_joint_limit.py and torque_limits.py
 * compute, which are its reference: what is said there of the mathematics is not repeated here.
 */
#ifndef ROBODYN_TORQUE_STEP_H
#define ROBODYN_TORQUE_STEP_H

#include <math.h>
#include <string.h>

/* The parts of a torque, in the order of TorqueParts; of a law's five coefficients the last one
 * is the effort's. */
enum { ROBODYN_INERTIAL, ROBODYN_CORIOLIS, ROBODYN_GRAVITY, ROBODYN_FRICTION, ROBODYN_FEEDBACK,
       ROBODYN_EFFORT, ROBODYN_PARTS };
enum { ROBODYN_EFFORT_COEFFICIENT = 4, ROBODYN_COEFFICIENTS = 5 };

#define ROBODYN_LONGEST_RATE_STEP 0.01 /* s */
#define ROBODYN_SHORTEST_STEP 1e-9     /* s */

/* Doubles that the caller lends: states and torques of the rows of a batch. */
#define ROBODYN_ROWS(joints) ((joints) < 7 ? 8 : (joints) + 1)
#define ROBODYN_WORKSPACE(joints) (4 * ROBODYN_ROWS(joints) * (joints))

/* The coefficients that a law's torque is linear in: see law_weights.py. */
typedef struct {
    int joints;
    double hold, damping, friction_slope, limit_slope;
    const double *feedforward, *computed; /* five each */
    const double *kp, *kd, *limit_damping, *is_continuous;
} robodyn_law;

/* What is to be followed; no position: nothing is. */
typedef struct {
    const double *position, *velocity, *acceleration, *effort;
} robodyn_reference;

/* The arm's model. Both functions return 0, or another number where they have failed. */
typedef struct {
    void *model;
    int (*inverse_dynamics)(void *model, int rows, const double *q, const double *qd,
                            const double *qdd, double *tau);
    int (*friction)(void *model, double width, const double *qd, const double *rigid_torque,
                    double *tau);
} robodyn_arm;

static inline double robodyn_clamped(double value, double lowest, double highest)
{
    return value < lowest ? lowest : value > highest ? highest : value; /* NaN stays NaN */
}

static inline int robodyn_any(const double *values, int count)
{
    for (int i = 0; i < count; i++)
        if (values[i] != 0.0) return 1;
    return 0;
}

/* Return the shorter way round, as computed_torque.wrapped does: in [-pi, pi]. */
static inline double robodyn_wrapped(double angle)
{
    const double pi = 3.14159265358979323846;
    double rest = fmod(angle + pi, 2.0 * pi);
    if (rest < 0.0) rest += 2.0 * pi;
    return rest - pi;
}

/* Add the friction that a reference asks for, under the load of three rows of torques. */
static inline int robodyn_add_friction(const robodyn_law *law, const robodyn_arm *arm,
                                       double weight, const double *velocity,
                                       const double *resting, const double *moving,
                                       const double *driven, double *scratch, double *friction)
{
    const int n = law->joints;
    if (weight == 0.0) return 0;
    for (int i = 0; i < n; i++) scratch[i] = moving[i] + driven[i] - resting[i];
    const int failed = arm->friction(arm->model, 1.0 / law->friction_slope, velocity, scratch,
                                     scratch + n);
    for (int i = 0; i < n; i++) friction[i] += weight * scratch[n + i];
    return failed;
}

/* Write the parts of the torque, ROBODYN_PARTS times n, at a measured state. */
static inline int robodyn_parts(const robodyn_law *law, const robodyn_arm *arm, const double *q,
                                const double *qd, const robodyn_reference *reference,
                                double *workspace, double *parts)
{
    const int n = law->joints;
    const size_t width = (size_t)n * sizeof(double);
    const double *const ff = law->feedforward, *const ct = law->computed;
    const double resting = law->hold + ff[ROBODYN_GRAVITY] + ct[ROBODYN_GRAVITY];
    const int has_reference = reference->position != NULL;
    const int has_feedforward = has_reference && robodyn_any(ff, ROBODYN_COEFFICIENTS);
    const int has_feedback = has_reference
        && (robodyn_any(ct, ROBODYN_COEFFICIENTS) || robodyn_any(law->kp, n)
            || robodyn_any(law->kd, n));
    int has_damping = law->damping != 0.0;
    for (int i = 0; i < n; i++) has_damping &= !isnan(qd[i]);
    memset(parts, 0, ROBODYN_PARTS * width);
    double *const inertial = parts, *const coriolis = parts + ROBODYN_CORIOLIS * n,
           *const gravity = parts + ROBODYN_GRAVITY * n,
           *const friction = parts + ROBODYN_FRICTION * n,
           *const feedback = parts + ROBODYN_FEEDBACK * n,
           *const effort = parts + ROBODYN_EFFORT * n;
    const int is_plain = !has_damping && !has_feedback && !has_feedforward;
    if (is_plain && resting == 0.0) return 0;

    /* One batch: at rest; damping; feedback's three; feedforward's three. */
    const int near = 1 + has_damping, far = near + 3 * has_feedback;
    const int rows = far + 3 * has_feedforward;
    double *const at = workspace, *const with = at + rows * n, *const under = with + rows * n,
           *const tau = under + rows * n;
    memset(with, 0, 2 * (size_t)rows * width);
    for (int row = 0; row < rows; row++)
        memcpy(at + row * n, row < far ? q : reference->position, width);
    if (has_damping) memcpy(under + n, qd, width);
    if (has_feedback) {
        memcpy(with + near * n, qd, width);
        memcpy(under + (near + 1) * n, reference->acceleration, width);
        for (int i = 0; i < n; i++) {
            double error = reference->position[i] - q[i];
            if (law->is_continuous[i] != 0.0) error = robodyn_wrapped(error);
            under[(near + 2) * n + i] =
                law->kd[i] * (reference->velocity[i] - qd[i]) + law->kp[i] * error;
        }
    }
    if (has_feedforward) {
        memcpy(with + (far + 1) * n, reference->velocity, width);
        memcpy(under + (far + 2) * n, reference->acceleration, width);
    }
    if (arm->inverse_dynamics(arm->model, rows, at, with, under, tau)) return 1;

    int failed = 0;
    const double held = has_reference ? law->hold : resting;
    for (int i = 0; i < n; i++) gravity[i] = held * tau[i];
    if (has_damping)
        for (int i = 0; i < n; i++) feedback[i] -= law->damping * (tau[n + i] - tau[i]);
    if (has_feedback) {
        const double *const moving = tau + near * n, *const driven = moving + n,
                     *const corrected = driven + n;
        for (int i = 0; i < n; i++) {
            coriolis[i] += ct[ROBODYN_CORIOLIS] * (moving[i] - tau[i]);
            inertial[i] += ct[ROBODYN_INERTIAL] * (driven[i] - tau[i]);
            feedback[i] += corrected[i] - tau[i];
            gravity[i] += ct[ROBODYN_GRAVITY] * tau[i];
        }
        failed |= robodyn_add_friction(law, arm, ct[ROBODYN_FRICTION], reference->velocity, tau,
                                       moving, driven, at, friction);
    }
    if (has_feedforward) {
        const double *const there = tau + far * n, *const moving = there + n,
                     *const driven = moving + n;
        for (int i = 0; i < n; i++) {
            coriolis[i] += ff[ROBODYN_CORIOLIS] * (moving[i] - there[i]);
            inertial[i] += ff[ROBODYN_INERTIAL] * (driven[i] - there[i]);
            gravity[i] += ff[ROBODYN_GRAVITY] * there[i];
        }
        failed |= robodyn_add_friction(law, arm, ff[ROBODYN_FRICTION], reference->velocity, there,
                                       moving, driven, at, friction);
    }
    if (has_reference && !is_plain) {
        const double weight = ff[ROBODYN_EFFORT_COEFFICIENT] + ct[ROBODYN_EFFORT_COEFFICIENT];
        for (int i = 0; i < n; i++) effort[i] = weight * reference->effort[i];
    }
    return failed;
}

/*
 * Write how far each joint is beyond its limits, (n, 2), -1 to 1, and return whether one is; then
 * change the torque to what it may have there.
 */
static inline int robodyn_soft_limited(const robodyn_law *law, const robodyn_arm *arm,
                                       const double *q, const double *qd,
                                       const double *position_limits,
                                       const double *effort_limits, double *workspace,
                                       double *torque, double *penetration, int *failed)
{
    const int n = law->joints;
    const size_t width = (size_t)n * sizeof(double);
    int rows = 1;
    for (int i = 0; i < n; i++) {
        const double beyond =
            q[i] - robodyn_clamped(q[i], position_limits[2 * i], position_limits[2 * i + 1]);
        penetration[i] =
            law->limit_slope > 0.0 ? robodyn_clamped(law->limit_slope * beyond, -1.0, 1.0) : 0.0;
        rows += penetration[i] != 0.0;
    }
    if (rows == 1) return 0;
    double *const at = workspace, *const with = at + rows * n, *const under = with + rows * n,
           *const tau = under + rows * n;
    memset(with, 0, 2 * (size_t)rows * width);
    for (int row = 0; row < rows; row++) memcpy(at + row * n, q, width);
    for (int i = 0, row = 0; i < n; i++)
        if (penetration[i] != 0.0) under[++row * n + i] = 1.0;
    if (arm->inverse_dynamics(arm->model, rows, at, with, under, tau)) {
        *failed = 1;
        return 1;
    }
    const double gravity_weight =
        law->hold + law->feedforward[ROBODYN_GRAVITY] + law->computed[ROBODYN_GRAVITY];
    for (int i = 0, row = 0; i < n; i++) {
        const double p = penetration[i], side = p > 0.0 ? 1.0 : p < 0.0 ? -1.0 : 0.0;
        const double depth = fabs(p), gravity = gravity_weight * tau[i];
        const double inertia = p != 0.0 ? tau[++row * n + i] - tau[i] : 0.0;
        const double more =
            robodyn_clamped(torque[i], -effort_limits[i], effort_limits[i]) - gravity;
        const double kept = side * more > 0.0 ? (1.0 - depth) * more : more;
        const double outward = side * qd[i] > 0.0 ? qd[i] : 0.0;
        torque[i] = gravity + kept - depth * law->limit_damping[i] * inertia * outward;
    }
    return 1;
}

/* Write the torque to send after an earlier one, NULL: after none, and which joints a limit held
 * back. */
static inline void robodyn_limited(int n, const double *torque, const double *effort_limits,
                                   const double *rate_limits, const double *last, double elapsed,
                                   double *sent, unsigned char *is_effort_limited,
                                   unsigned char *is_rate_limited)
{
    const double time =
        robodyn_clamped(elapsed, ROBODYN_SHORTEST_STEP, ROBODYN_LONGEST_RATE_STEP);
    for (int i = 0; i < n; i++) {
        double largest = effort_limits[i];
        const double clipped = robodyn_clamped(torque[i], -largest, largest);
        double allowed = clipped;
        if (last) {
            const double step = rate_limits[i] * time;
            allowed = robodyn_clamped(clipped, last[i] - step, last[i] + step);
            if (fabs(last[i]) > largest) largest = fabs(last[i]);
        }
        sent[i] = robodyn_clamped(allowed, -largest, largest);
        is_effort_limited[i] = clipped != torque[i];
        is_rate_limited[i] = allowed != clipped;
    }
}

/*
 * Write a quintic's position, velocity and acceleration at s, 0 to 1, of a segment of a duration
 * [s]; its coefficients have shape (6, n).
 */
static inline void robodyn_sample(int n, const double *coefficients, double s, double duration,
                                  double *position, double *velocity, double *acceleration)
{
    const double a = 1.0 / duration, b = a * a;
    for (int i = 0; i < n; i++) {
        double p = 0.0, v = 0.0, c = 0.0;
        for (int k = 5; k >= 0; k--) p = p * s + coefficients[k * n + i];
        for (int k = 5; k >= 1; k--) v = v * s + k * coefficients[k * n + i];
        for (int k = 5; k >= 2; k--) c = c * s + k * (k - 1) * coefficients[k * n + i];
        position[i] = p;
        velocity[i] = a * v;
        acceleration[i] = b * c;
    }
}

/* A reference of several segments; efforts have shape (segments + 1, n). */
typedef struct {
    int segments;
    const double *knots, *coefficients, *efforts, *end_position, *end_effort;
} robodyn_motion;

/*
 * Write position, velocity, acceleration and effort, (4, n), at a time after the first knot, and
 * return whether it is that.
 */
static inline int robodyn_followed(int n, const robodyn_motion *motion, double time,
                                   double *followed)
{
    const double *const knots = motion->knots;
    if (!(time > knots[0])) return 0;
    int low = 0, high = motion->segments;
    if (time >= knots[high]) {
        memset(followed, 0, 4 * (size_t)n * sizeof(double));
        memcpy(followed, motion->end_position, (size_t)n * sizeof(double));
        memcpy(followed + 3 * n, motion->end_effort, (size_t)n * sizeof(double));
        return 1;
    }
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        if (time < knots[middle]) high = middle;
        else low = middle;
    }
    const double duration = knots[low + 1] - knots[low], s = (time - knots[low]) / duration;
    robodyn_sample(n, motion->coefficients + (size_t)low * 6 * n, s, duration, followed,
                   followed + n, followed + 2 * n);
    const double *const efforts = motion->efforts + (size_t)low * n;
    for (int i = 0; i < n; i++) followed[3 * n + i] = (1.0 - s) * efforts[i] + s * efforts[n + i];
    return 1;
}

/*
 * Return whether nothing about a state needs a closer look: it is near the last one, no joint is
 * fast, and none is far from what it follows, NULL: nothing.
 */
static inline int robodyn_is_plain(int n, const double *q, const double *qd, const double *last_q,
                                   double largest_step, double largest_speed,
                                   const double *is_continuous, const double *followed,
                                   double largest_error)
{
    for (int i = 0; i < n; i++) {
        if (!(fabs(q[i] - last_q[i]) <= largest_step)) return 0;
        if (!(fabs(qd[i]) <= largest_speed)) return 0;
        if (!followed) continue;
        double error = followed[i] - q[i];
        if (is_continuous[i] != 0.0) error = robodyn_wrapped(error);
        if (!(fabs(error) <= largest_error)) return 0;
    }
    return 1;
}

#endif
