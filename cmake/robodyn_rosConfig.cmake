# SPDX-License-Identifier: Apache-2.0
# The core of the control pipeline, headers alone: robodyn_ros::core; and the folder of the parameters
# that a controller around it shares with the node.
get_filename_component(robodyn_ros_PREFIX "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)
set(robodyn_ros_PARAMETERS "${robodyn_ros_PREFIX}/share/robodyn_ros/parameters")
if(NOT TARGET robodyn_ros::core)
  add_library(robodyn_ros::core INTERFACE IMPORTED)
  set_target_properties(robodyn_ros::core PROPERTIES
    INTERFACE_INCLUDE_DIRECTORIES "${robodyn_ros_PREFIX}/include"
    INTERFACE_COMPILE_FEATURES cxx_std_17
  )
endif()
