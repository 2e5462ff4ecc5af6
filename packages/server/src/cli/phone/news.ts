/**
 * Waits until a condition holds, and looks at it again with each news.
 *
 *   const news = createNews()
 *   await news.until(() => isThere, 10_000, () => say('It takes long.'))
 *   news.wake()
 */
export interface News {
  wake(): void
  /** Waits until `holds()`. After `lateMs` it calls `late` once, and looks again. */
  until(holds: () => boolean, lateMs?: number, late?: () => void): Promise<void>
}

export function createNews(): News {
  let next = Promise.withResolvers<void>()
  const wake = () => {
    next.resolve()
    next = Promise.withResolvers()
  }
  return {
    wake,
    async until(holds, lateMs, late) {
      const patience =
        lateMs === undefined
          ? undefined
          : setTimeout(() => {
              late?.()
              wake()
            }, lateMs)
      while (!holds()) await next.promise
      clearTimeout(patience)
    },
  }
}
