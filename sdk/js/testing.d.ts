/** What came of a schedule. */
export interface Outcome {
  /** Fingerprints of the invariants that the last step reached broke; empty where none did. */
  violations: string[];
  /** The number of that step, from 1. */
  step: number;
  /** Steps that could not be taken. */
  passedOver: number[];
}

/**
 * Has the model that `command` starts take the steps of a schedule, until an invariant breaks or the end. `scenario` has the keys of
 * the scenario file, `schedule` the text of a schedule file.
 */
export function follow(
  command: readonly string[],
  scenario: Record<string, unknown>,
  schedule: string,
  cwd?: string,
): Promise<Outcome>;
