/* SPDX-License-Identifier: Apache-2.0 */
/* What the modules of a control cycle share: NumPy arrays, and an arm by Python's callables. */
#ifndef ROBODYN_PYTHON_ARM_H
#define ROBODYN_PYTHON_ARM_H

#define PY_SSIZE_T_CLEAN
#define NPY_NO_DEPRECATED_API NPY_1_7_API_VERSION
#include <Python.h>
#include <numpy/arrayobject.h>
#include <string.h>

typedef struct {
    int joints;
    PyObject *inverse_dynamics, *friction;
} Callables;

/* Return the numbers of an array; one of another kind is converted, and kept until the end. */
static inline double *doubles(PyObject *object, npy_intp count, const char *name, PyObject **kept)
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

static inline PyObject *borrowed_array(int dimensions, npy_intp *shape, const double *data)
{
    PyObject *array = PyArray_SimpleNewFromData(dimensions, shape, NPY_DOUBLE, (void *)data);
    if (array) PyArray_CLEARFLAGS((PyArrayObject *)array, NPY_ARRAY_WRITEABLE);
    return array;
}

/* Copy a callable's result, and let go of it. */
static inline int taken(PyObject *result, npy_intp count, double *to)
{
    if (!result) return 1;
    PyObject *kept = NULL;
    const double *values = doubles(result, count, "a result of the model", &kept);
    if (values) memcpy(to, values, (size_t)count * sizeof(double));
    Py_XDECREF(kept);
    Py_DECREF(result);
    return values == NULL;
}

static inline int call_inverse_dynamics(void *model, int rows, const double *q, const double *qd,
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

static inline int call_friction(void *model, double width, const double *qd, const double *rigid_torque,
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

static int import_numpy(PyObject *Py_UNUSED(module))
{
    import_array1(-1);
    return 0;
}

static PyModuleDef_Slot slots[] = {{Py_mod_exec, (void *)import_numpy}, {0, NULL}};

#endif
