/* SPDX-License-Identifier: Apache-2.0 */
/* torque_step.h for Python: NumPy arrays in and out, the arm's model by Python's callables. */
#define PY_SSIZE_T_CLEAN
#define NPY_NO_DEPRECATED_API NPY_1_7_API_VERSION
#include <Python.h>
#include <numpy/arrayobject.h>

#include "torque_step.h"

/* A law as one array: four numbers, twice five coefficients, four times n. */
enum { NUMBERS = 4, PER_JOINT = 4, HEAD = NUMBERS + 2 * ROBODYN_COEFFICIENTS };

typedef struct {
    int joints;
    PyObject *inverse_dynamics, *friction;
} Callables;

/* Return the numbers of an array; one of another kind is converted, and kept until the end. */
static double *doubles(PyObject *object, npy_intp count, const char *name, PyObject **kept)
{
    PyArrayObject *array = (PyArrayObject *)object;
    if (!PyArray_Check(object) || PyArray_TYPE(array) != NPY_DOUBLE || !PyArray_ISCARRAY_RO(array))
        array = (PyArrayObject *)(*kept = PyArray_FROM_OTF(object, NPY_DOUBLE,
                                                           NPY_ARRAY_IN_ARRAY));
    if (!array) return NULL;
    if (PyArray_SIZE(array) == count) return (double *)PyArray_DATA(array);
    PyErr_Format(PyExc_ValueError, "%s must have %zd numbers", name, count);
    return NULL;
}

static PyObject *borrowed_array(int dimensions, npy_intp *shape, const double *data)
{
    PyObject *array = PyArray_SimpleNewFromData(dimensions, shape, NPY_DOUBLE, (void *)data);
    if (array) PyArray_CLEARFLAGS((PyArrayObject *)array, NPY_ARRAY_WRITEABLE);
    return array;
}

/* Copy a callable's result, and let go of it. */
static int taken(PyObject *result, npy_intp count, double *to)
{
    if (!result) return 1;
    PyObject *kept = NULL;
    const double *values = doubles(result, count, "a result of the model", &kept);
    if (values) memcpy(to, values, (size_t)count * sizeof(double));
    Py_XDECREF(kept);
    Py_DECREF(result);
    return values == NULL;
}

static int call_inverse_dynamics(void *model, int rows, const double *q, const double *qd,
                                 const double *qdd, double *tau)
{
    const Callables *callables = model;
    npy_intp shape[2] = {rows, callables->joints};
    PyObject *arguments[3] = {borrowed_array(2, shape, q), borrowed_array(2, shape, qd),
                              borrowed_array(2, shape, qdd)};
    PyObject *result = NULL;
    if (arguments[0] && arguments[1] && arguments[2])
        result = PyObject_Vectorcall(callables->inverse_dynamics, arguments, 3, NULL);
    for (int k = 0; k < 3; k++) Py_XDECREF(arguments[k]);
    return taken(result, shape[0] * shape[1], tau);
}

static int call_friction(void *model, double width, const double *qd, const double *rigid_torque,
                         double *tau)
{
    const Callables *callables = model;
    npy_intp shape[1] = {callables->joints};
    PyObject *arguments[3] = {PyFloat_FromDouble(width), borrowed_array(1, shape, qd),
                              borrowed_array(1, shape, rigid_torque)};
    PyObject *result = NULL;
    if (arguments[0] && arguments[1] && arguments[2])
        result = PyObject_Vectorcall(callables->friction, arguments, 3, NULL);
    for (int k = 0; k < 3; k++) Py_XDECREF(arguments[k]);
    return taken(result, shape[0], tau);
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
    const npy_intp size = PyArray_Check(args[0]) ? PyArray_SIZE((PyArrayObject *)args[0]) : 0;
    npy_intp n = (size - HEAD) / PER_JOINT;
    if (size < HEAD + PER_JOINT || size != HEAD + PER_JOINT * n)
        return PyErr_Format(PyExc_ValueError, "a law has %d + %d n numbers", HEAD, PER_JOINT);
    PyObject *kept[ARGUMENTS] = {NULL}, *torque = NULL, *parts = NULL, *penetration = NULL,
             *result = NULL;
    double *workspace = NULL;
    const double *arrays[ARGUMENTS] = {NULL};
    for (int k = 0; k < ARGUMENTS; k++) {
        const int is_of_reference = k >= REFERENCE && k < REFERENCE + 4;
        if (k == INVERSE_DYNAMICS || k == FRICTION || (is_of_reference && args[k] == Py_None))
            continue;
        const npy_intp wanted = k == LAW ? size : k == POSITION_LIMITS ? 2 * n : n;
        if (!(arrays[k] = doubles(args[k], wanted, "an argument", kept + k))) goto done;
    }
    const double *const numbers = arrays[LAW], *const per_joint = numbers + HEAD;
    const robodyn_law law = {
        (int)n, numbers[0], numbers[1], numbers[2], numbers[3], numbers + NUMBERS,
        numbers + NUMBERS + ROBODYN_COEFFICIENTS, per_joint, per_joint + n, per_joint + 2 * n,
        per_joint + 3 * n,
    };
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
    double *total = PyArray_DATA((PyArrayObject *)torque);
    double *part = PyArray_DATA((PyArrayObject *)parts);
    const double *const q = arrays[POSITION], *const qd = arrays[VELOCITY];
    if (robodyn_parts(&law, &arm, q, qd, &reference, workspace, part)) goto done;
    for (npy_intp i = 0; i < n; i++) {
        total[i] = part[i];
        for (int k = 1; k < ROBODYN_PARTS; k++) total[i] += part[k * n + i];
    }
    int failed = 0;
    const int is_beyond = robodyn_soft_limited(
        &law, &arm, q, qd, arrays[POSITION_LIMITS], arrays[EFFORT_LIMITS], workspace, total,
        PyArray_DATA((PyArrayObject *)penetration), &failed);
    if (failed) goto done;
    int is_finite = 1;
    for (npy_intp i = 0; i < n; i++) is_finite &= isfinite(total[i]) != 0;
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

static PyMethodDef methods[] = {
    {"evaluated", (PyCFunction)(void (*)(void))evaluated, METH_FASTCALL, NULL},
    {"limited", (PyCFunction)(void (*)(void))limited, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

static int import_numpy(PyObject *Py_UNUSED(module))
{
    import_array1(-1);
    return 0;
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, (void *)import_numpy}, {0, NULL}};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "robodyn_torque_step", "The torque of a control cycle.", 0, methods,
    slots, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_robodyn_torque_step(void) { return PyModuleDef_Init(&definition); }
