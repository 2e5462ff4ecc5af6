import { StoreError } from '../ports/store-error.ts'

/** A session that changes its owner that often while it is looked for has to wait. */
export const mostTries = 8

export function changing(): StoreError {
  return new StoreError('unavailable', 'the session changes its node again and again')
}

/** Gives the nodes that change the owner a moment for it, in ms. */
export function pauseOf(tries: number): number {
  return Math.min(200, 5 * 2 ** tries)
}
