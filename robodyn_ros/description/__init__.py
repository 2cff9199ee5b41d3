# SPDX-License-Identifier: Apache-2.0
"""Robot descriptions: URDF text to records, records to a chain, and what is odd about them."""
