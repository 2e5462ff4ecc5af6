import type { Step } from '../../call/effects.ts'

/** The rows in the outbox of steps that this process has committed, for as long as somebody has the step. */
export interface StepRows {
  note(steps: readonly Step[], rows: readonly number[]): void
  find(step: Step): number | undefined
}

export function createStepRows(): StepRows {
  const rowOf = new WeakMap<Step, number>()
  return {
    note(steps, rows) {
      for (const [index, step] of steps.entries()) {
        const row = rows[index]
        if (row !== undefined) rowOf.set(step, row)
      }
    },
    find: (step) => rowOf.get(step),
  }
}
