int PyInit_another;
