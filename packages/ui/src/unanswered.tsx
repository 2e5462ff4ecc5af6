import type { Call } from '@ringwire/client/types'
import { useEffect, useRef, useState } from 'react'
import type { EndedCall } from './line-state.ts'
import { useCallUi, useWords } from './provider.tsx'
import { nameOf } from './words.ts'

/** What became of somebody who was asked first and did not answer, once the other call is back; until the user closes it. */
export function Unanswered() {
  const { call } = useCallUi()
  const words = useWords()
  const [ended, forget] = useUnanswered()
  if (!ended || !call) return null
  return (
    <div className="rw-panel" data-testid="unanswered">
      <p role="status">
        {words.over(ended)} {words.restorable(nameOf(call))}.
      </p>
      <button type="button" className="rw-button" data-testid="close-unanswered" onClick={forget}>
        {words.close}
      </button>
    </div>
  )
}

function useUnanswered(): [EndedCall | undefined, () => void] {
  const { call, other, phase } = useCallUi()
  const asked = useRef<Call>(undefined)
  const [ended, setEnded] = useState<EndedCall>()
  useEffect(() => {
    const before = asked.current
    asked.current = other && phase === 'calling' ? call : undefined
    if (asked.current) return setEnded(undefined)
    const state = before?.state
    // A call that this side cancelled is no news.
    if (before && state?.name === 'over' && state.status !== 'cancelled') {
      setEnded({ call: before, state, since: undefined, endedAt: Date.now() })
    }
  }, [call, other, phase])
  return [ended, () => setEnded(undefined)]
}
