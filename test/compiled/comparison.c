// SPDX-License-Identifier: Apache-2.0
// Appended to the kernels of a model and tables of what they should give.

static int differs(
  const Kernel * kernel, const char * how, const double * value, const double * wanted,
  ptrdiff_t size)
{
  double scale = 1.0, difference = 0.0;
  for (ptrdiff_t k = 0; k < size; k++) scale = fmax(scale, fabs(wanted[k]));
  for (ptrdiff_t k = 0; k < size; k++)
    difference = fmax(difference, fabs(value[k] - wanted[k]) / scale);
  if (difference < 1e-10) return 0;
  printf("%s, %s: differs by %g\n", kernel->name, how, difference);
  return 1;
}

static int compared(
  const Kernel * kernel, const double * const * in, const double * const * expected)
{
  static double results[MAX_RESULTS][20000];
  double * out[MAX_RESULTS];
  const double * row[MAX_INPUTS];
  int wrong = 0;
  for (int r = 0; r < kernel->results; r++) out[r] = results[r];
  if (!kernel->many(parameters, COUNT, in, out)) return 1;
  for (int r = 0; r < kernel->results; r++)
    wrong += differs(kernel, "many", results[r], expected[r], COUNT * kernel->result[r].size);
  for (int i = 0; i < COUNT; i++) {
    for (int k = 0; k < kernel->inputs; k++) row[k] = in[k] + i * kernel->widths[k];
    if (!kernel->one(parameters, row, out)) return 1;
    for (int r = 0; r < kernel->results; r++)
      wrong += differs(
        kernel, "one", results[r], expected[r] + i * kernel->result[r].size,
        kernel->result[r].size);
  }
  return wrong;
}
