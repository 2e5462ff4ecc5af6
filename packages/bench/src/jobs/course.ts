import type { Target } from './job.ts'

/** A flood while it goes on. */
export interface Course {
  readonly target: Target
  running: boolean
  /** What got as far as the service's socket. */
  sent: number
  /** Connections that the service refused or closed. */
  refused: number
}

export type Worker = (course: Course) => Promise<void>

/** Makes what a flood needs before it begins: tokens, calls. */
export type Flood = (target: Target) => Promise<Worker[]>
