/** A part of the service; `name` is what the log calls it. */
export interface Part {
  readonly name: string
  start?(): unknown
  /** `atOnce`: nobody is given time. */
  stop?(atOnce: boolean): unknown
}

export interface Parts {
  /** Starts each when the one before it has started. If one fails, all before it are stopped, and it rejects. */
  begin(parts: readonly Part[]): Promise<void>
  /** Stops all that were started, the last one first. Goes on where one fails, and rejects with what failed first. */
  stop(atOnce: boolean): Promise<void>
}

export function createParts(onFailed: (part: string, error: unknown) => void): Parts {
  const begun: Part[] = []

  async function stop(atOnce: boolean): Promise<void> {
    let failure: { readonly error: unknown } | undefined
    for (let part = begun.pop(); part !== undefined; part = begun.pop()) {
      try {
        await part.stop?.(atOnce)
      } catch (error) {
        onFailed(part.name, error)
        failure ??= { error }
      }
    }
    if (failure !== undefined) throw failure.error
  }

  return {
    async begin(parts) {
      for (const part of parts) {
        try {
          await part.start?.()
        } catch (error) {
          await stop(true).catch(() => {})
          throw error
        }
        begun.push(part)
      }
    },
    stop,
  }
}
