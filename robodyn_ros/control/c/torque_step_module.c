/* SPDX-License-Identifier: Apache-2.0 */
/* torque_step.h for Python: NumPy arrays in and out, the arm's model by Python's callables. */
#include "python_arm.h"
#include "torque_step.h"

/* A law as one array: four numbers, twice five coefficients, four times n. */
enum { NUMBERS = 4, PER_JOINT = 4, HEAD = NUMBERS + 2 * ROBODYN_COEFFICIENTS };

/* Return a law from its numbers. */
static robodyn_law law_of(const double *numbers, npy_intp n)
{
    const double *const per_joint = numbers + HEAD;
    const robodyn_law law = {
        (int)n, numbers[0], numbers[1], numbers[2], numbers[3], numbers + NUMBERS,
        numbers + NUMBERS + ROBODYN_COEFFICIENTS, per_joint, per_joint + n, per_joint + 2 * n,
        per_joint + 3 * n,
    };
    return law;
}

/* Return the joints of an array that holds a law, or -1 with an error. */
static npy_intp joints_of(PyObject *law)
{
    const npy_intp size = PyArray_Check(law) ? PyArray_SIZE((PyArrayObject *)law) : 0;
    const npy_intp n = (size - HEAD) / PER_JOINT;
    if (size >= HEAD + PER_JOINT && size == HEAD + PER_JOINT * n) return n;
    PyErr_Format(PyExc_ValueError, "a law has %d + %d n numbers", HEAD, PER_JOINT);
    return -1;
}

/* Write torque, parts and penetration; return 1, 0 where not finite, -1 where the model failed. */
static int evaluate(const robodyn_law *law, const robodyn_arm *arm, const double *q,
                    const double *qd, const robodyn_reference *reference,
                    const double *effort_limits, const double *position_limits,
                    double *workspace, double *torque, double *parts, double *penetration,
                    int *is_beyond)
{
    const int n = law->joints;
    if (robodyn_parts(law, arm, q, qd, reference, workspace, parts)) return -1;
    for (int i = 0; i < n; i++) {
        torque[i] = parts[i];
        for (int k = 1; k < ROBODYN_PARTS; k++) torque[i] += parts[k * n + i];
    }
    int failed = 0, is_finite = 1;
    *is_beyond = robodyn_soft_limited(law, arm, q, qd, position_limits, effort_limits, workspace,
                                      torque, penetration, &failed);
    if (failed) return -1;
    for (int i = 0; i < n; i++) is_finite &= isfinite(torque[i]) != 0;
    return is_finite;
}

enum { LAW, INVERSE_DYNAMICS, FRICTION, POSITION, VELOCITY, REFERENCE, EFFORT_LIMITS = REFERENCE + 4,
       POSITION_LIMITS, ARGUMENTS };

/*
 * evaluated(law, inverse_dynamics, friction, q, qd, reference..., effort_limits, position_limits)
 *
 * The reference is four arrays, or None four times. Returns the torque, its parts (6, n) and the penetration
 * of the joint limits or None; None where the torque is not finite.
 */
static PyObject *evaluated(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    if (count != ARGUMENTS)
        return PyErr_Format(PyExc_TypeError, "evaluated() takes %d arguments", ARGUMENTS);
    npy_intp n = joints_of(args[LAW]);
    if (n < 0) return NULL;
    PyObject *kept[ARGUMENTS] = {NULL}, *torque = NULL, *parts = NULL, *penetration = NULL,
             *result = NULL;
    double *workspace = NULL;
    const double *arrays[ARGUMENTS] = {NULL};
    for (int k = 0; k < ARGUMENTS; k++) {
        const int is_of_reference = k >= REFERENCE && k < REFERENCE + 4;
        if (k == INVERSE_DYNAMICS || k == FRICTION || (is_of_reference && args[k] == Py_None))
            continue;
        const npy_intp wanted =
            k == LAW ? HEAD + PER_JOINT * n : k == POSITION_LIMITS ? 2 * n : n;
        if (!(arrays[k] = doubles(args[k], wanted, "an argument", kept + k))) goto done;
    }
    const robodyn_law law = law_of(arrays[LAW], n);
    const robodyn_reference reference = {arrays[REFERENCE], arrays[REFERENCE + 1],
                                         arrays[REFERENCE + 2], arrays[REFERENCE + 3]};
    Callables callables = {(int)n, args[INVERSE_DYNAMICS], args[FRICTION]};
    const robodyn_arm arm = {&callables, call_inverse_dynamics, call_friction};

    npy_intp shape[2] = {ROBODYN_PARTS, n};
    torque = PyArray_SimpleNew(1, shape + 1, NPY_DOUBLE);
    parts = PyArray_SimpleNew(2, shape, NPY_DOUBLE);
    penetration = PyArray_SimpleNew(1, shape + 1, NPY_DOUBLE);
    workspace = PyMem_Malloc(sizeof(double) * (size_t)ROBODYN_WORKSPACE(n));
    if (!torque || !parts || !penetration || !workspace) {
        if (!PyErr_Occurred()) PyErr_NoMemory();
        goto done;
    }
    int is_beyond = 0;
    const int is_finite = evaluate(
        &law, &arm, arrays[POSITION], arrays[VELOCITY], &reference, arrays[EFFORT_LIMITS],
        arrays[POSITION_LIMITS], workspace, PyArray_DATA((PyArrayObject *)torque),
        PyArray_DATA((PyArrayObject *)parts), PyArray_DATA((PyArrayObject *)penetration),
        &is_beyond);
    if (is_finite < 0) goto done;
    result = is_finite ? PyTuple_Pack(3, torque, parts, is_beyond ? penetration : Py_None)
                       : Py_NewRef(Py_None);
done:
    for (int k = 0; k < ARGUMENTS; k++) Py_XDECREF(kept[k]);
    PyMem_Free(workspace);
    Py_XDECREF(torque);
    Py_XDECREF(parts);
    Py_XDECREF(penetration);
    return result;
}

/*
 * limited(torque, effort_limits, rate_limits, last, elapsed)
 *
 * Returns the torque to send, and which joints the effort limits and the rate limits held back.
 */
static PyObject *limited(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    if (count != 5) return PyErr_Format(PyExc_TypeError, "limited() takes 5 arguments");
    npy_intp n = PyArray_Check(args[0]) ? PyArray_SIZE((PyArrayObject *)args[0]) : 0;
    PyObject *kept[4] = {NULL}, *sent = NULL, *effort_limited = NULL, *rate_limited = NULL,
             *result = NULL;
    const double *arrays[4] = {NULL}; /* torque, effort_limits, rate_limits, last */
    for (int k = 0; k < 4; k++)
        if ((k < 3 || args[k] != Py_None)
            && !(arrays[k] = doubles(args[k], n, "an argument", kept + k))) goto done;
    const double elapsed = PyFloat_AsDouble(args[4]);
    if (PyErr_Occurred()) goto done;
    sent = PyArray_SimpleNew(1, &n, NPY_DOUBLE);
    effort_limited = PyArray_SimpleNew(1, &n, NPY_BOOL);
    rate_limited = PyArray_SimpleNew(1, &n, NPY_BOOL);
    if (sent && effort_limited && rate_limited) {
        robodyn_limited((int)n, arrays[0], arrays[1], arrays[2], arrays[3], elapsed,
                        PyArray_DATA((PyArrayObject *)sent),
                        PyArray_DATA((PyArrayObject *)effort_limited),
                        PyArray_DATA((PyArrayObject *)rate_limited));
        result = PyTuple_Pack(3, sent, effort_limited, rate_limited);
    }
done:
    for (int k = 0; k < 4; k++) Py_XDECREF(kept[k]);
    Py_XDECREF(sent);
    Py_XDECREF(effort_limited);
    Py_XDECREF(rate_limited);
    return result;
}

enum { C_LAW, C_INVERSE_DYNAMICS, C_FRICTION, C_EFFORT_LIMITS, C_POSITION_LIMITS, C_RATE_LIMITS,
       C_LARGEST_STEP, C_LARGEST_SPEED, C_LARGEST_ERROR, CONSTANTS };
enum { M_KNOTS, M_COEFFICIENTS, M_EFFORTS, M_END_POSITION, M_END_EFFORT, MOTION };

/*
 * plain_cycle(constants, motion, q, qd, last_q, time, last_torque, elapsed)
 *
 * A whole cycle, where nothing about it needs a closer look; None where something does, and
 * nothing was decided then. The motion is None, or knots, coefficients, efforts and the end's
 * position and effort. Returns the torque to send, which joints the effort, the rate and the
 * position limits held back, the parts (6, n) and what is followed (4, n) or None.
 */
static PyObject *plain_cycle(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    if (count != 8 || !PyTuple_Check(args[0]) || PyTuple_GET_SIZE(args[0]) != CONSTANTS
        || (args[1] != Py_None
            && (!PyTuple_Check(args[1]) || PyTuple_GET_SIZE(args[1]) != MOTION)))
        return PyErr_Format(PyExc_TypeError, "plain_cycle() takes constants, a motion and six more");
    PyObject *const *const constants = &PyTuple_GET_ITEM(args[0], 0);
    npy_intp n = joints_of(constants[C_LAW]);
    if (n < 0) return NULL;
    enum { KEPT = 16 };
    PyObject *kept[KEPT] = {NULL}, **keep = kept, *sent = NULL, *limited_by[3] = {NULL},
             *parts = NULL, *followed = NULL, *result = NULL;
    double *workspace = NULL;
    const double *law_numbers, *effort_limits, *position_limits, *rate_limits, *q, *qd, *last_q,
        *last = NULL;
    robodyn_motion motion = {0, NULL, NULL, NULL, NULL, NULL};
    const char *const what = "an argument";
    if (!(law_numbers = doubles(constants[C_LAW], HEAD + PER_JOINT * n, what, keep++))
        || !(effort_limits = doubles(constants[C_EFFORT_LIMITS], n, what, keep++))
        || !(position_limits = doubles(constants[C_POSITION_LIMITS], 2 * n, what, keep++))
        || !(rate_limits = doubles(constants[C_RATE_LIMITS], n, what, keep++))
        || !(q = doubles(args[2], n, what, keep++)) || !(qd = doubles(args[3], n, what, keep++))
        || !(last_q = doubles(args[4], n, what, keep++))
        || (args[6] != Py_None && !(last = doubles(args[6], n, what, keep++)))) goto done;
    if (args[1] != Py_None) {
        PyObject *const *const given = &PyTuple_GET_ITEM(args[1], 0);
        const npy_intp knots =
            PyArray_Check(given[M_KNOTS]) ? PyArray_SIZE((PyArrayObject *)given[M_KNOTS]) : 0;
        motion.segments = (int)knots - 1;
        if (knots < 1
            || !(motion.knots = doubles(given[M_KNOTS], knots, what, keep++))
            || !(motion.coefficients =
                     doubles(given[M_COEFFICIENTS], (knots - 1) * 6 * n, what, keep++))
            || !(motion.efforts = doubles(given[M_EFFORTS], knots * n, what, keep++))
            || !(motion.end_position = doubles(given[M_END_POSITION], n, what, keep++))
            || !(motion.end_effort = doubles(given[M_END_EFFORT], n, what, keep++))) {
            if (!PyErr_Occurred()) PyErr_Format(PyExc_ValueError, "a motion has a knot");
            goto done;
        }
    }
    const double time = PyFloat_AsDouble(args[5]), elapsed = PyFloat_AsDouble(args[7]);
    const double largest_step = PyFloat_AsDouble(constants[C_LARGEST_STEP]);
    const double largest_speed = PyFloat_AsDouble(constants[C_LARGEST_SPEED]);
    const double largest_error = PyFloat_AsDouble(constants[C_LARGEST_ERROR]);
    if (PyErr_Occurred()) goto done;

    const robodyn_law law = law_of(law_numbers, n);
    Callables callables = {(int)n, constants[C_INVERSE_DYNAMICS], constants[C_FRICTION]};
    const robodyn_arm arm = {&callables, call_inverse_dynamics, call_friction};
    npy_intp shape[2] = {ROBODYN_PARTS, n}, shape_of_followed[2] = {4, n};
    robodyn_reference reference = {NULL, NULL, NULL, NULL};
    double *wanted = NULL;
    if (motion.knots) {
        if (!(followed = PyArray_SimpleNew(2, shape_of_followed, NPY_DOUBLE))) goto done;
        wanted = PyArray_DATA((PyArrayObject *)followed);
        if (!robodyn_followed((int)n, &motion, time, wanted)) goto unusual;
        reference = (robodyn_reference){wanted, wanted + n, wanted + 2 * n, wanted + 3 * n};
    }
    if (!robodyn_is_plain((int)n, q, qd, last_q, largest_step, largest_speed, law.is_continuous,
                          wanted, largest_error)) goto unusual;
    sent = PyArray_SimpleNew(1, shape + 1, NPY_DOUBLE);
    for (int k = 0; k < 3; k++) limited_by[k] = PyArray_SimpleNew(1, shape + 1, NPY_BOOL);
    parts = PyArray_SimpleNew(2, shape, NPY_DOUBLE);
    workspace = PyMem_Malloc(sizeof(double) * (size_t)(ROBODYN_WORKSPACE(n) + 2 * n));
    if (!sent || !limited_by[0] || !limited_by[1] || !limited_by[2] || !parts || !workspace) {
        if (!PyErr_Occurred()) PyErr_NoMemory();
        goto done;
    }
    double *const torque = workspace + ROBODYN_WORKSPACE(n), *const penetration = torque + n;
    int is_beyond = 0;
    const int is_finite =
        evaluate(&law, &arm, q, qd, &reference, effort_limits, position_limits, workspace, torque,
                 PyArray_DATA((PyArrayObject *)parts), penetration, &is_beyond);
    if (is_finite < 0) goto done;
    if (!is_finite) goto unusual;
    unsigned char *const beyond = PyArray_DATA((PyArrayObject *)limited_by[2]);
    for (npy_intp i = 0; i < n; i++) beyond[i] = is_beyond && penetration[i] != 0.0;
    robodyn_limited((int)n, torque, effort_limits, rate_limits, last, elapsed,
                    PyArray_DATA((PyArrayObject *)sent),
                    PyArray_DATA((PyArrayObject *)limited_by[0]),
                    PyArray_DATA((PyArrayObject *)limited_by[1]));
    result = PyTuple_Pack(6, sent, limited_by[0], limited_by[1], limited_by[2], parts,
                          followed ? followed : Py_None);
    goto done;
unusual:
    result = Py_NewRef(Py_None);
done:
    for (int k = 0; k < KEPT; k++) Py_XDECREF(kept[k]);
    PyMem_Free(workspace);
    Py_XDECREF(sent);
    for (int k = 0; k < 3; k++) Py_XDECREF(limited_by[k]);
    Py_XDECREF(parts);
    Py_XDECREF(followed);
    return result;
}

static PyMethodDef methods[] = {
    {"evaluated", (PyCFunction)(void (*)(void))evaluated, METH_FASTCALL, NULL},
    {"limited", (PyCFunction)(void (*)(void))limited, METH_FASTCALL, NULL},
    {"plain_cycle", (PyCFunction)(void (*)(void))plain_cycle, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "robodyn_torque_step", "The torque of a control cycle.", 0, methods,
    slots, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_robodyn_torque_step(void) { return PyModuleDef_Init(&definition); }
