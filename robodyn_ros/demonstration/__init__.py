# SPDX-License-Identifier: Apache-2.0
"""What the demonstration shows: which motion suits an arm, and what is reported of it."""
