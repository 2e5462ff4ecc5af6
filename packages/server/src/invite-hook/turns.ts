/** How many questions of a product, and of one caller, a process has open at most [HOOK5]. */
export const openLimits = { product: 50, caller: 2 } as const

/** A question that has its turn, until it is given back. */
export type Release = () => void

interface Waiting {
  readonly caller: string
  readonly begin: (release: Release) => void
}

interface Open {
  count: number
  readonly callers: Map<string, number>
  readonly waiting: Set<Waiting>
}

/** Gives out turns to ask, product by product: a slow backend keeps no other product waiting. */
export function createTurns(limits: { readonly product: number; readonly caller: number } = openLimits) {
  const products = new Map<string, Open>()

  function openOf(product: string): Open {
    const known = products.get(product)
    if (known !== undefined) return known
    const open: Open = { count: 0, callers: new Map(), waiting: new Set() }
    products.set(product, open)
    return open
  }

  const isFree = ({ count, callers }: Open, caller: string) =>
    count < limits.product && (callers.get(caller) ?? 0) < limits.caller

  function take(product: string, open: Open, caller: string): Release {
    open.count++
    open.callers.set(caller, (open.callers.get(caller) ?? 0) + 1)
    return () => {
      open.count--
      const left = (open.callers.get(caller) ?? 1) - 1
      if (left > 0) open.callers.set(caller, left)
      else open.callers.delete(caller)
      pass(product, open)
    }
  }

  /** The caller who has waited longest and may ask has the next turn. */
  function pass(product: string, open: Open): void {
    for (const waiting of open.waiting) {
      if (!isFree(open, waiting.caller)) continue
      open.waiting.delete(waiting)
      waiting.begin(take(product, open, waiting.caller))
      return
    }
    if (open.count === 0 && open.waiting.size === 0) products.delete(product)
  }

  /** Resolves with a turn; undefined where none came before the signal. */
  return function turn(product: string, caller: string, signal: AbortSignal): Promise<Release | undefined> {
    const open = openOf(product)
    if (isFree(open, caller)) return Promise.resolve(take(product, open, caller))
    if (signal.aborted) return Promise.resolve(undefined)
    return new Promise((resolve) => {
      const waiting: Waiting = { caller, begin: resolve }
      open.waiting.add(waiting)
      signal.addEventListener('abort', () => {
        open.waiting.delete(waiting)
        resolve(undefined)
      })
    })
  }
}
