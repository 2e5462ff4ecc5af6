/** Looks again and again, `ms` after the last look ended; a failed look is reported, and made again. */
export interface Looking {
  /** The first look: rejects where that fails, and nothing is looked at then. */
  start(): Promise<void>
  stop(): void
}

/** `again`: how later looks are made, where that is another way than the first one. */
export function lookEvery(
  ms: number,
  look: () => Promise<void>,
  onError: (error: unknown) => void,
  again = look,
): Looking {
  let timer: ReturnType<typeof setTimeout> | undefined
  let isStopped = false

  function next(): void {
    if (isStopped) return
    timer = setTimeout(() => void again().catch(onError).finally(next), ms)
  }

  return {
    async start() {
      await look()
      next()
    },
    stop() {
      isStopped = true
      clearTimeout(timer)
    },
  }
}
