/**
 * A result that may be there at once. The embedded composition answers at once, so a relay takes no turn of the event
 * loop; a composition with a network in between answers later. `andThen` keeps one code path for both.
 */
export type MaybePromise<T> = T | Promise<T>

export function andThen<T, R>(value: MaybePromise<T>, next: (value: T) => MaybePromise<R>): MaybePromise<R> {
  return value instanceof Promise ? value.then(next) : next(value)
}

/** Done when all of them are; at once where all are. */
export function allDone(work: readonly MaybePromise<unknown>[]): MaybePromise<void> {
  return work.some((one) => one instanceof Promise) ? Promise.all(work).then(() => {}) : undefined
}

/** Both results. */
export function bothOf<A, B>(one: MaybePromise<A>, other: MaybePromise<B>): MaybePromise<readonly [A, B]> {
  return one instanceof Promise || other instanceof Promise ? Promise.all([one, other]) : [one, other]
}

/** For work that nobody waits for: `onError` hears of its failure. */
export function unawaited(work: MaybePromise<unknown>, onError: (error: unknown) => void): void {
  if (work instanceof Promise) work.catch(onError)
}

/** The same methods, with every answer at once. */
export type AtOnce<Port> = {
  readonly [Method in keyof Port]: Port[Method] extends (...args: infer Args) => infer Answer
    ? (...args: Args) => Awaited<Answer>
    : never
}
