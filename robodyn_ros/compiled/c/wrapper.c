/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kernels of any arm's library as functions for Python: from NumPy arrays to a kernel's
 * arguments and back. The libraries are plain C without Python.
 *
 * A call with float64 arrays of the right shape goes straight to the kernel. Everything else
 * (lists, other types, keywords, trajectories, mistakes) takes the general path.
 */
#define PY_SSIZE_T_CLEAN
#define NPY_NO_DEPRECATED_API NPY_1_7_API_VERSION
#include <Python.h>
#include <dlfcn.h>
#include <numpy/arrayobject.h>

#include "robodyn_model.h"
#include "vectors.h"

/* ---- from arrays to a kernel and back --------------------------------------------------------*/

#define LIBRARY "robodyn_ros.library"

/* For the last inputs that may be left out. */
#define WIDEST_OPTIONAL 128
static const double zeros[WIDEST_OPTIONAL];

static PyObject *wrong_shape, *singular_mass_matrix, *name_of_out;
static PyArray_Descr * float64;

/* A kernel with its run-time inputs: what a function of Python's carries. */
typedef struct
{
  PyObject_HEAD const Kernel * kernel;
  PyMethodDef method;
  PyObject * parameters; /* an array of its own */
} Bound;

ALWAYS_INLINE const double * parameters_of(PyObject * self)
{
  return (const double *)PyArray_DATA((PyArrayObject *)((Bound *)self)->parameters);
}

ALWAYS_INLINE double * data_of(PyObject * array)
{
  return (double *)PyArray_DATA((PyArrayObject *)array);
}

ALWAYS_INLINE int is_plain(PyObject * object, npy_intp width)
{
  if (!PyArray_CheckExact(object)) return 0;
  PyArrayObject * array = (PyArrayObject *)object;
  return PyArray_NDIM(array) == 1 && PyArray_DIM(array, 0) == width &&
         PyArray_TYPE(array) == NPY_DOUBLE && PyArray_ISCARRAY_RO(array);
}

ALWAYS_INLINE int is_result(PyObject * object, int dimensions, const npy_intp * shape)
{
  if (!PyArray_Check(object)) return 0;
  PyArrayObject * array = (PyArrayObject *)object;
  if (
    PyArray_NDIM(array) != dimensions || PyArray_TYPE(array) != NPY_DOUBLE ||
    !PyArray_ISCARRAY(array))
    return 0;
  for (int k = 0; k < dimensions; k++)
    if (PyArray_DIM(array, k) != shape[k]) return 0;
  return 1;
}

ALWAYS_INLINE PyObject * new_result(int dimensions, const npy_intp * shape)
{
  Py_INCREF(float64);
  return PyArray_NewFromDescr(&PyArray_Type, float64, dimensions, shape, NULL, NULL, 0, NULL);
}

RARE static PyObject * raise_error(
  PyObject * type, PyObject * element, PyObject * value, PyObject * allowed)
{
  if (element && value && allowed) {
    PyObject * arguments = PyTuple_Pack(3, element, value, allowed);
    if (arguments) PyErr_SetObject(type, arguments);
    Py_XDECREF(arguments);
  }
  Py_XDECREF(element);
  Py_XDECREF(value);
  Py_XDECREF(allowed);
  return NULL;
}

RARE static PyObject * raise_wrong_shape(const char * name, PyObject * value, PyObject * allowed)
{
  return raise_error(wrong_shape, PyUnicode_FromFormat("argument %s", name), value, allowed);
}

RARE static PyObject * raise_singular(void)
{
  return raise_error(
    singular_mass_matrix, PyUnicode_FromString("mass matrix"),
    PyUnicode_FromString("a pivot that is not positive"),
    PyUnicode_FromString("positive definite: inertia about every joint (see the findings)"));
}

static PyObject * described(PyObject * array)
{
  PyObject * shape = PyObject_GetAttrString(array, "shape");
  PyObject * text = shape ? PyUnicode_FromFormat("shape %R", shape) : NULL;
  Py_XDECREF(shape);
  return text;
}

/* Return the slot of a keyword: an input, then out, then tip_wrench; -1 for none of them. */
static int slot_of(const Kernel * kernel, PyObject * name)
{
  for (int k = 0; k < kernel->inputs; k++)
    if (PyUnicode_CompareWithASCIIString(name, kernel->names[k]) == 0) return k;
  if (PyUnicode_CompareWithASCIIString(name, "out") == 0) return MAX_INPUTS;
  if (kernel->wrench && PyUnicode_CompareWithASCIIString(name, "tip_wrench") == 0)
    return MAX_INPUTS + 1;
  return -1;
}

static int sort_arguments(
  const Kernel * kernel, PyObject * const * args, Py_ssize_t count, PyObject * names,
  PyObject ** slots)
{
  if (count > kernel->inputs + 1) {
    PyErr_Format(
      PyExc_TypeError, "%s() takes %d positional arguments but %zd were given", kernel->name,
      kernel->inputs + 1, count);
    return -1;
  }
  for (Py_ssize_t k = 0; k < count; k++) slots[k < kernel->inputs ? k : MAX_INPUTS] = args[k];
  for (Py_ssize_t k = 0; names && k < PyTuple_GET_SIZE(names); k++) {
    PyObject * name = PyTuple_GET_ITEM(names, k);
    int slot = slot_of(kernel, name);
    if (slot < 0 || slots[slot]) {
      PyErr_Format(
        PyExc_TypeError, "%s() got an unexpected or repeated argument '%U'", kernel->name, name);
      return -1;
    }
    slots[slot] = args[count + k];
  }
  for (int slot = kernel->required; slot < MAX_ARGUMENTS; slot++)
    if (slots[slot] == Py_None) slots[slot] = NULL;
  for (int k = 0; k < kernel->required; k++)
    if (!slots[k]) {
      PyErr_Format(
        PyExc_TypeError, "%s() misses the argument '%s'", kernel->name, kernel->names[k]);
      return -1;
    }
  return 0;
}

static PyArrayObject * as_floats(const char * name, PyObject * object)
{
  PyArrayObject * array =
    (PyArrayObject *)PyArray_FROM_OTF(object, NPY_DOUBLE, NPY_ARRAY_IN_ARRAY);
  if (
    !array &&
    (PyErr_ExceptionMatches(PyExc_TypeError) || PyErr_ExceptionMatches(PyExc_ValueError))) {
    PyErr_Clear();
    Py_INCREF(object);
    raise_wrong_shape(name, object, PyUnicode_FromString("an array of numbers"));
  }
  return array;
}

/* Whether an array is one row of a width or, with rows >= 0, that many. */
static int has_rows(PyArrayObject * array, npy_intp width, npy_intp rows)
{
  if (rows < 0) return PyArray_NDIM(array) == 1 && PyArray_DIM(array, 0) == width;
  return PyArray_NDIM(array) == 2 && PyArray_DIM(array, 0) == rows &&
         PyArray_DIM(array, 1) == width;
}

static int convert_inputs(
  const Kernel * kernel, PyObject ** slots, PyArrayObject ** arrays, npy_intp * rows)
{
  for (int k = 0; k < kernel->inputs; k++) {
    npy_intp width = kernel->widths[k];
    if (k >= kernel->required && !slots[k]) {
      npy_intp shape[] = {*rows, width};
      arrays[k] = (PyArrayObject *)PyArray_ZEROS(
        *rows < 0 ? 1 : 2, *rows < 0 ? shape + 1 : shape, NPY_DOUBLE, 0);
      if (!arrays[k]) return -1;
      continue;
    }
    if (!(arrays[k] = as_floats(kernel->names[k], slots[k]))) return -1;
    if (k == 0) *rows = PyArray_NDIM(arrays[0]) == 2 ? PyArray_DIM(arrays[0], 0) : -1;
    if (!has_rows(arrays[k], width, *rows)) {
      PyObject * allowed =
        k == 0 ? PyUnicode_FromFormat("shape (%zd,) or (N, %zd)", width, width)
               : PyUnicode_FromFormat("as many rows as %s, of %zd", kernel->names[0], width);
      raise_wrong_shape(kernel->names[k], described((PyObject *)arrays[k]), allowed);
      return -1;
    }
  }
  return 0;
}

static int overlap(PyArrayObject * a, PyArrayObject * b)
{
  const char *p = PyArray_BYTES(a), *q = PyArray_BYTES(b);
  return p < q + PyArray_NBYTES(b) && q < p + PyArray_NBYTES(a);
}

static int add_wrench(
  const Kernel * kernel, PyObject * self, PyArrayObject * q, PyObject * object, npy_intp rows,
  double * out)
{
  PyArrayObject * wrench = as_floats("tip_wrench", object);
  if (!wrench) return -1;
  int single = has_rows(wrench, 6, -1);
  if (!single && (rows < 0 || !has_rows(wrench, 6, rows))) {
    raise_wrong_shape(
      "tip_wrench", described((PyObject *)wrench),
      PyUnicode_FromString("shape (6,), or (N, 6) where q is (N, n)"));
    Py_DECREF(wrench);
    return -1;
  }
  const npy_intp size = kernel->result[0].size;
  double * torque = PyMem_Malloc(sizeof(double) * (size_t)size);
  for (npy_intp i = 0; torque && i < (rows < 0 ? 1 : rows); i++) {
    const double * in[] = {
      data_of((PyObject *)q) + i * size, data_of((PyObject *)wrench) + (single ? 0 : 6 * i)};
    kernel->wrench->one(parameters_of(self), in, &torque);
    for (npy_intp k = 0; k < size; k++) out[i * size + k] += torque[k];
  }
  Py_DECREF(wrench);
  if (!torque) PyErr_NoMemory();
  PyMem_Free(torque);
  return torque ? 0 : -1;
}

static PyObject * general_result(const Result * result, PyObject * given, npy_intp rows)
{
  npy_intp shape[4] = {rows, result->shape[0], result->shape[1], result->shape[2]};
  const npy_intp * wanted = rows < 0 ? shape + 1 : shape;
  int dimensions = result->dimensions + (rows >= 0);
  if (!given) return new_result(dimensions, wanted);
  if (is_result(given, dimensions, wanted)) {
    Py_INCREF(given);
    return given;
  }
  PyObject * sizes = PyArray_IntTupleFromIntp(dimensions, wanted);
  PyObject * found = PyArray_Check(given) ? described(given) : Py_NewRef(given);
  raise_wrong_shape(
    "out", found,
    PyUnicode_FromFormat("a writeable, contiguous array of float64, shape %R", sizes));
  Py_XDECREF(sizes);
  return NULL;
}

/* Fill made with new results, or with those given as out, an array or a tuple of arrays. */
static int general_results(
  const Kernel * kernel, PyObject * given, npy_intp rows, PyObject ** made)
{
  if (
    given && kernel->results > 1 &&
    !(PyTuple_Check(given) && PyTuple_GET_SIZE(given) == kernel->results)) {
    Py_INCREF(given);
    raise_wrong_shape(
      "out", given, PyUnicode_FromFormat("a tuple of %d arrays", kernel->results));
    return -1;
  }
  for (int k = 0; k < kernel->results; k++) {
    PyObject * own = given && kernel->results > 1 ? PyTuple_GET_ITEM(given, k) : given;
    if (!(made[k] = general_result(&kernel->result[k], own, rows))) return -1;
  }
  return 0;
}

/* Return the results to the caller, and take over their references; a tuple as given in out. */
ALWAYS_INLINE PyObject * returned(const Kernel * kernel, PyObject ** made, PyObject * given)
{
  if (kernel->results == 1) return made[0];
  PyObject * all = given;
  if (given)
    Py_INCREF(given);
  else
    all = PyTuple_New(kernel->results);
  for (int k = 0; k < kernel->results; k++) {
    if (all && !given)
      PyTuple_SET_ITEM(all, k, made[k]);
    else
      Py_DECREF(made[k]);
  }
  return all;
}

RARE static PyObject * general_call(
  const Kernel * kernel, PyObject * self, PyObject * const * args, Py_ssize_t count,
  PyObject * names)
{
  PyObject * slots[MAX_ARGUMENTS] = {NULL};
  PyArrayObject * arrays[MAX_INPUTS] = {NULL};
  PyObject *made[MAX_RESULTS] = {NULL}, *result = NULL;
  double * out[MAX_RESULTS];
  npy_intp rows = -1;
  if (sort_arguments(kernel, args, count, names, slots) < 0) return NULL;
  if (convert_inputs(kernel, slots, arrays, &rows) < 0) goto done;
  if (general_results(kernel, slots[MAX_INPUTS], rows, made) < 0) goto failed;
  for (int k = 0; k < kernel->results; k++) out[k] = data_of(made[k]);
  const double * in[MAX_INPUTS];
  for (int k = 0; k < kernel->inputs; k++) {
    /* Copy inputs that the result overwrites: later samples may still need them. */
    for (int r = 0; r < kernel->results; r++) {
      if (!overlap(arrays[k], (PyArrayObject *)made[r])) continue;
      PyArrayObject * copy = (PyArrayObject *)PyArray_NewCopy(arrays[k], NPY_CORDER);
      Py_SETREF(arrays[k], copy);
      if (!copy) goto failed;
    }
    in[k] = data_of((PyObject *)arrays[k]);
  }
  int exists = 1;
  if (rows < 0) {
    exists = kernel->one(parameters_of(self), in, out);
  } else if (rows > 0) {
    Py_BEGIN_ALLOW_THREADS exists = kernel->many(parameters_of(self), rows, in, out);
    Py_END_ALLOW_THREADS
  }
  if (!exists) {
    raise_singular();
    goto failed;
  }
  PyObject * wrench = slots[MAX_INPUTS + 1];
  if (!wrench || add_wrench(kernel, self, arrays[0], wrench, rows, out[0]) == 0) {
    result = returned(kernel, made, slots[MAX_INPUTS]);
    goto done;
  }
failed:
  for (int k = 0; k < kernel->results; k++) Py_XDECREF(made[k]);
done:
  for (int k = 0; k < kernel->inputs; k++) Py_XDECREF(arrays[k]);
  return result;
}

/* Whether a call with out= may write to an object. */
ALWAYS_INLINE int are_results(const Kernel * kernel, PyObject * object)
{
  const Result * result = kernel->result;
  if (kernel->results == 1) return is_result(object, result->dimensions, result->shape);
  if (!PyTuple_CheckExact(object) || PyTuple_GET_SIZE(object) != kernel->results) return 0;
  for (int k = 0; k < kernel->results; k++)
    if (!is_result(PyTuple_GET_ITEM(object, k), result[k].dimensions, result[k].shape)) return 0;
  return 1;
}

static PyObject * call_kernel(
  PyObject * self, PyObject * const * args, Py_ssize_t count, PyObject * names)
{
  const Kernel * kernel = ((Bound *)self)->kernel;
  const double * in[MAX_INPUTS];
  if (
    !names && count == kernel->inputs &&
    kernel->results == 1) { /* most calls: the shortest way */
    Py_ssize_t k = 0;
    for (; k < count && is_plain(args[k], kernel->widths[k]); k++) in[k] = data_of(args[k]);
    if (k < count) return general_call(kernel, self, args, count, names);
    PyObject * made = new_result(kernel->result->dimensions, kernel->result->shape);
    if (!made) return NULL;
    double * out = data_of(made);
    if (kernel->one(parameters_of(self), in, &out)) return made;
    Py_DECREF(made);
    return raise_singular();
  }
  int plain = count >= kernel->required && count <= kernel->inputs;
  for (int k = 0; plain && k < count; k++) {
    plain = is_plain(args[k], kernel->widths[k]);
    if (plain) in[k] = data_of(args[k]);
  }
  for (int k = (int)count; plain && k < kernel->inputs; k++) {
    plain = kernel->widths[k] <= WIDEST_OPTIONAL;
    in[k] = zeros;
  }
  PyObject * made[MAX_RESULTS] = {NULL};
  double * out[MAX_RESULTS];
  const Result * result = kernel->result;
  if (plain && !names) {
    for (int k = 0; k < kernel->results; k++) {
      made[k] = new_result(result[k].dimensions, result[k].shape);
      if (!made[k]) {
        while (k > 0) Py_DECREF(made[--k]);
        return NULL;
      }
    }
  } else if (
    plain && PyTuple_GET_SIZE(names) == 1 && PyTuple_GET_ITEM(names, 0) == name_of_out &&
    are_results(kernel, args[count])) {
    for (int k = 0; k < kernel->results; k++) {
      made[k] = kernel->results == 1 ? args[count] : PyTuple_GET_ITEM(args[count], k);
      Py_INCREF(made[k]);
    }
  }
  if (!made[0]) return general_call(kernel, self, args, count, names);
  for (int k = 0; k < kernel->results; k++) out[k] = data_of(made[k]);
  if (kernel->one(parameters_of(self), in, out))
    return returned(kernel, made, names ? args[count] : NULL);
  for (int k = 0; k < kernel->results; k++) Py_DECREF(made[k]);
  return raise_singular();
}

/* ---- the module ------------------------------------------------------------------------------*/

static void release(PyObject * self)
{
  Py_DECREF(((Bound *)self)->parameters);
  PyObject_Free(self);
}

static PyTypeObject BoundType = {
  PyVarObject_HEAD_INIT(NULL, 0).tp_name = "robodyn_ros.compiled.c.wrapper.Bound",
  .tp_basicsize = sizeof(Bound),
  .tp_dealloc = release,
  .tp_flags = Py_TPFLAGS_DEFAULT,
};

static PyObject * function_of(const Kernel * kernel, PyObject * parameters)
{
  Bound * bound = PyObject_New(Bound, &BoundType);
  if (!bound) return NULL;
  Py_INCREF(parameters);
  bound->kernel = kernel;
  bound->parameters = parameters;
  bound->method = (PyMethodDef){
    kernel->name, (PyCFunction)(void (*)(void))call_kernel, METH_FASTCALL | METH_KEYWORDS,
    kernel->signature};
  PyObject * function = PyCFunction_New(&bound->method, (PyObject *)bound);
  Py_DECREF(bound);
  return function;
}

/* load(path) returns the kernels of a library, which stays loaded. */
static PyObject * load(PyObject * Py_UNUSED(module), PyObject * path)
{
  PyObject * bytes = NULL;
  if (!PyUnicode_FSConverter(path, &bytes)) return NULL;
  void * library = dlopen(PyBytes_AS_STRING(bytes), RTLD_NOW | RTLD_LOCAL);
  Py_DECREF(bytes);
  void * kernels = library ? dlsym(library, "robodyn_kernels") : NULL;
  if (!kernels) {
    PyErr_SetString(PyExc_OSError, dlerror());
    return NULL;
  }
  PyObject * capsule = PyCapsule_New(kernels, LIBRARY, NULL);
  if (capsule && PyCapsule_SetContext(capsule, library) < 0) Py_CLEAR(capsule);
  return capsule;
}

/* bind(library, parameters) returns a library's kernels as functions with run-time inputs. */
static PyObject * bind(PyObject * Py_UNUSED(module), PyObject * args)
{
  PyObject *library, *given;
  if (!PyArg_ParseTuple(args, "OO", &library, &given)) return NULL;
  const Kernel * const * kernel = PyCapsule_GetPointer(library, LIBRARY);
  if (!kernel) return NULL;
  PyObject * own = PyArray_FROM_OTF(given, NPY_DOUBLE, NPY_ARRAY_IN_ARRAY | NPY_ARRAY_ENSURECOPY);
  PyObject * functions = own ? PyDict_New() : NULL;
  for (; functions && *kernel; kernel++) {
    PyObject * function = function_of(*kernel, own);
    if (!function || PyDict_SetItemString(functions, (*kernel)->name, function) < 0)
      Py_CLEAR(functions);
    Py_XDECREF(function);
  }
  Py_XDECREF(own);
  return functions;
}

/* model(library) returns a library's robodyn_model for the core. */
static PyObject * model(PyObject * Py_UNUSED(module), PyObject * capsule)
{
  void * library = PyCapsule_GetContext(capsule);
  void * found = library ? dlsym(library, ROBODYN_MODEL_SYMBOL) : NULL;
  const robodyn_model * (*function)(void);
  if (!found) return PyErr_Format(PyExc_LookupError, "no %s", ROBODYN_MODEL_SYMBOL);
  memcpy(&function, &found, sizeof function);
  return PyCapsule_New((void *)function(), "robodyn_ros.model", NULL);
}

static PyMethodDef methods[] = {
  {"load", load, METH_O, "Return the kernels of a library."},
  {"bind", bind, METH_VARARGS, "Return kernels as functions with run-time inputs."},
  {"model", model, METH_O, "Return a library's robodyn_model."},
  {NULL, NULL, 0, NULL},
};

static struct PyModuleDef definition = {
  PyModuleDef_HEAD_INIT,
  .m_name = "wrapper",
  .m_doc = "Kernels of an arm's library as functions on arrays.",
  .m_size = -1,
  .m_methods = methods,
};

PyMODINIT_FUNC PyInit_wrapper(void)
{
  import_array();
  PyObject * errors = PyImport_ImportModule("robodyn_ros.errors");
  if (!errors || PyType_Ready(&BoundType) < 0) return NULL;
  wrong_shape = PyObject_GetAttrString(errors, "InvalidArgument");
  singular_mass_matrix = PyObject_GetAttrString(errors, "NoSolution");
  name_of_out = PyUnicode_InternFromString("out");
  float64 = PyArray_DescrFromType(NPY_DOUBLE);
  Py_DECREF(errors);
  if (!wrong_shape || !singular_mass_matrix || !name_of_out) return NULL;
  return PyModule_Create(&definition);
}
