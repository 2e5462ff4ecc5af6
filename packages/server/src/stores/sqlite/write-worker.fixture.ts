/** The service's own writer thread, whose answers wait while they are held: as in a process that stood still meanwhile. */
export interface HeldWriter {
  readonly startWorker: () => Worker
  hold(): void
  /** Hands over every answer that waited, in order. */
  release(): void
}

export function createHeldWriter(): HeldWriter {
  let isHeld = false
  const waiting: (() => void)[] = []
  return {
    startWorker() {
      const worker = new Worker(new URL('./write-worker.ts', import.meta.url))
      let hear: Worker['onmessage'] = null
      worker.addEventListener('message', (event) => {
        const now = () => hear?.call(worker, event)
        if (isHeld) waiting.push(now)
        else now()
      })
      Object.defineProperty(worker, 'onmessage', {
        get: () => hear,
        set(handler: Worker['onmessage']) {
          hear = handler
        },
      })
      return worker
    },
    hold() {
      isHeld = true
    },
    release() {
      isHeld = false
      for (const now of waiting.splice(0)) now()
    },
  }
}
