import { useTakeable } from '@ringwire/client/react'
import { createTake, type Take } from '@ringwire/client/take'
import { useEffect, useState } from 'react'
import { classes, type PartProps } from './part.ts'
import { useCallUi, useWords } from './provider.tsx'
import { nameOf } from './words.ts'

/**
 * Calls of this person at other devices: each can go on here [TAKE1]. The client has to list `takeCapabilities` of
 * `@ringwire/client/take`.
 */
export function TakeableCalls({ className }: PartProps) {
  const { client, call, take } = useCallUi()
  const words = useWords()
  const calls = useTakeable(useTake(client))
  if (calls.length === 0) return null
  return (
    <ul className={classes('rw-restorable', className)} data-testid="takeable">
      {calls.map((each) => (
        <li key={each.callUuid} data-call={each.callUuid}>
          <span>{words.takeable(nameOf(each))}</span>
          <button
            type="button"
            className="rw-button"
            data-testid="continue-here"
            disabled={call !== undefined}
            onClick={() => take(each)}
          >
            {words.continueHere}
          </button>
        </li>
      ))}
    </ul>
  )
}

/** The service sends nothing when a call begins at another device: the page asks when the user comes to it. */
function useTake(client: Parameters<typeof createTake>[0]): Take | undefined {
  const [take, setTake] = useState<Take>()
  useEffect(() => {
    const made = createTake(client)
    const look = () => void made.refresh()
    setTake(made)
    window.addEventListener('focus', look)
    document.addEventListener('visibilitychange', look)
    return () => {
      made.close()
      window.removeEventListener('focus', look)
      document.removeEventListener('visibilitychange', look)
    }
  }, [client])
  return take
}
