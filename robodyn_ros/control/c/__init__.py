# SPDX-License-Identifier: Apache-2.0
"""C source of what a control cycle computes."""
