//! Delta debugging, prioritized backtracking, and the pipeline that finds short violating schedules.
