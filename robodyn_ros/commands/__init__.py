# SPDX-License-Identifier: Apache-2.0
"""The commands of ``robodyn``, one module for each subject."""
