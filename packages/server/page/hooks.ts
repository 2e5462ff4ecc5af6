import { useCallback, useEffect, useRef, useState } from 'preact/hooks'
import { textOf } from './ask.ts'

export interface Asking<T> {
  readonly data: T | undefined
  /** Why the last attempt failed; the data of an earlier one stays. */
  readonly problem: string | undefined
  readonly again: () => void
}

/** Asks now, again when `key` changes, and then every `everyMs` while somebody looks at the page. */
export function useAsked<T>(key: string, load: () => Promise<T>, everyMs?: number): Asking<T> {
  const [state, setState] = useState<{ key: string; data?: T; problem?: string }>({ key })
  const latest = useRef(load)
  latest.current = load
  const current = useRef(key)
  current.current = key

  const again = useCallback(async () => {
    try {
      const data = await latest.current()
      if (current.current === key) setState({ key, data })
    } catch (error) {
      if (current.current === key)
        setState((before) => ({ ...(before.key === key ? before : { key }), problem: textOf(error) }))
    }
  }, [key])

  useEffect(() => {
    void again()
    if (everyMs === undefined) return
    const timer = setInterval(() => {
      if (document.visibilityState === 'visible') void again()
    }, everyMs)
    return () => clearInterval(timer)
  }, [again, everyMs])

  const own = state.key === key ? state : { key }
  return { data: own.data, problem: own.problem, again: () => void again() }
}
