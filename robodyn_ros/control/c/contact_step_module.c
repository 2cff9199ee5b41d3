/* SPDX-License-Identifier: Apache-2.0 */
/* contact_step.h for Python: the states are NumPy arrays, changed in place. */
#include "python_arm.h"
#include "contact_step.h"

/* The constants as one array: four numbers, gains, two thresholds, coefficients of friction. */
enum { IS_HELD, FRICTION_SLOPE, PRESLIDING, DWELL, HEAD };
enum { ROWS = 3 + ROBODYN_FRICTION_ROWS };

/* Return the numbers of a state, which is written to. */
static double *state_of(PyObject *object, npy_intp count)
{
    PyArrayObject *array = (PyArrayObject *)object;
    if (PyArray_Check(object) && PyArray_TYPE(array) == NPY_DOUBLE && PyArray_ISCARRAY(array)
        && PyArray_SIZE(array) == count) return PyArray_DATA(array);
    PyErr_Format(PyExc_ValueError, "a state must be an array of %zd doubles", count);
    return NULL;
}

enum { INVERSE_DYNAMICS, CONSTANTS, LONGEST, OBSERVER, DETECTOR, IN_CONTACT, POSITION, VELOCITY,
       TORQUE, TIME, ARGUMENTS };

/*
 * observed(inverse_dynamics, constants, longest, observer, detector, in_contact, q, qd, torque,
 *          time)
 *
 * Takes a sample into the states, of which the detector's may be None, and returns whether that
 * is done. Otherwise it needs a closer look, and nothing has changed.
 */
static PyObject *observed(PyObject *Py_UNUSED(module), PyObject *const *args, Py_ssize_t count)
{
    if (count != ARGUMENTS)
        return PyErr_Format(PyExc_TypeError, "observed() takes %d arguments", ARGUMENTS);
    const npy_intp size = PyArray_Check(args[CONSTANTS])
        ? PyArray_SIZE((PyArrayObject *)args[CONSTANTS]) : 0;
    const npy_intp n = (size - HEAD) / ROWS;
    if (size < HEAD + ROWS || size != HEAD + ROWS * n)
        return PyErr_Format(PyExc_ValueError, "the constants are %d + %d n numbers", HEAD, ROWS);
    PyObject *kept[4] = {NULL}, *result = NULL;
    double *workspace = NULL, *observer_state, *detector_state = NULL;
    const double *constants, *q, *qd, *torque;
    const char *const what = "an argument";
    const npy_intp observer_size = ROBODYN_OBSERVER_ROWS * n + 1;
    const npy_intp detector_size = ROBODYN_DETECTOR_ROWS * n + 2;
    const int has_detector = args[DETECTOR] != Py_None;
    if (!(constants = doubles(args[CONSTANTS], size, what, kept))
        || !(q = doubles(args[POSITION], n, what, kept + 1))
        || !(qd = doubles(args[VELOCITY], n, what, kept + 2))
        || !(torque = doubles(args[TORQUE], n, what, kept + 3))
        || !(observer_state = state_of(args[OBSERVER], observer_size))
        || (has_detector && !(detector_state = state_of(args[DETECTOR], detector_size))))
        goto done;
    const double longest = PyFloat_AsDouble(args[LONGEST]), time = PyFloat_AsDouble(args[TIME]);
    const int in_contact = PyObject_IsTrue(args[IN_CONTACT]);
    if (in_contact < 0 || PyErr_Occurred()) goto done;

    const double step = time - observer_state[observer_size - 1];
    const double *const gain = constants + HEAD;
    const robodyn_observer observer = {(int)n, constants[IS_HELD] != 0.0,
                                       constants[FRICTION_SLOPE], constants[PRESLIDING], gain,
                                       gain + 3 * n};
    const robodyn_detector detector = {(int)n, in_contact, constants[DWELL], gain + n,
                                       gain + 2 * n};
    Callables callables = {(int)n, args[INVERSE_DYNAMICS], NULL};
    const robodyn_arm arm = {&callables, call_inverse_dynamics, NULL};
    if (!(step > 0.0 && step <= longest)) goto unusual;
    workspace = PyMem_Malloc(sizeof(double) * (size_t)(4 * n + observer_size + detector_size));
    if (!workspace) {
        PyErr_NoMemory();
        goto done;
    }
    double *const next = workspace + 4 * n, *const next_detector = next + observer_size;
    const int is_finite =
        robodyn_observed(&observer, &arm, observer_state, step, q, qd, torque, workspace, next);
    if (is_finite < 0) goto done;
    if (!is_finite) goto unusual;
    next[observer_size - 1] = time;
    if (has_detector) {
        const double last_time = detector_state[detector_size - 2];
        next_detector[detector_size - 2] = time;
        next_detector[detector_size - 1] = detector_state[detector_size - 1];
        if (time < last_time
            || !robodyn_undisturbed(&detector, detector_state, last_time, time, qd,
                                    next + ROBODYN_EXTERNAL * n, next_detector,
                                    next_detector + detector_size - 1)) goto unusual;
        memcpy(detector_state, next_detector, sizeof(double) * (size_t)detector_size);
    }
    memcpy(observer_state, next, sizeof(double) * (size_t)observer_size);
    result = Py_NewRef(Py_True);
    goto done;
unusual:
    result = Py_NewRef(Py_False);
done:
    for (int k = 0; k < 4; k++) Py_XDECREF(kept[k]);
    PyMem_Free(workspace);
    return result;
}

static PyMethodDef methods[] = {
    {"observed", (PyCFunction)(void (*)(void))observed, METH_FASTCALL, NULL},
    {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
    PyModuleDef_HEAD_INIT, "robodyn_contact_step", "What the outside does to an arm.", 0, methods,
    slots, NULL, NULL, NULL,
};

PyMODINIT_FUNC PyInit_robodyn_contact_step(void) { return PyModuleDef_Init(&definition); }
