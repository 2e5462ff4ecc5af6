import { useCallClient } from '@ringwire/client/react'
import { useEffect, useId, useRef } from 'react'
import { Avatar } from './avatar.tsx'
import { Icon } from './icons.tsx'
import type { EndedCall } from './line-state.ts'
import { useCallUi, useWords } from './provider.tsx'
import { durationText, isFinal, nameOf } from './words.ts'

/** Errors after which another call would also fail. */
const finalCodes = /NOT_ALLOWED$|^AUTH_|TO_SELF|ALREADY_ANSWERED|NOT_PARTICIPANT/

export interface EndedProps {
  ended: EndedCall
  /** When the call went live, where the application knows better. */
  since: number | undefined
  /** It was closed, and the focus has nowhere to go. */
  closed(): void
}

/**
 * How the last call ended. It takes the focus that went with the controls, itself and not one of its buttons: the key
 * that hung up may still be held, and must not call again.
 */
export function Ended({ ended, since: given, closed }: EndedProps) {
  const { client, callAgain, dismiss } = useCallUi()
  const words = useWords()
  const { state } = useCallClient(client)
  const part = useRef<HTMLDivElement>(null)
  const id = useId()
  useEffect(() => {
    if (document.activeElement === document.body) part.current?.focus({ preventScroll: true })
  }, [])

  const { call, since, endedAt } = ended
  const { reason, error } = ended.state
  const name = nameOf(call)
  const isUnanswered = call.direction === 'incoming' && since === undefined
  const close = () => {
    closed()
    dismiss()
  }
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset is for fields
    <div ref={part} className="rw-ended" role="group" aria-labelledby={id} tabIndex={-1} data-testid="ended">
      <Avatar name={name} waits={false} />
      <h2 id={id} title={name}>
        {name}
      </h2>
      {/* The announcement has read it. */}
      <p aria-hidden="true">{words.over(ended)}</p>
      {since !== undefined && (
        <p className="rw-timer" data-testid="duration">
          {words.duration(durationText((endedAt - Math.min(since, given ?? since)) / 1000))}
        </p>
      )}
      <div className="rw-after">
        {!(error ? finalCodes.test(error.code) : isFinal(reason)) && (
          <button
            type="button"
            className="rw-answer rw-green"
            data-testid="call-again"
            disabled={state.name !== 'online'}
            onClick={callAgain}
          >
            <Icon name={call.callType === 'video' ? 'video' : 'accept'} />
            {isUnanswered ? words.callBack : words.callAgain}
          </button>
        )}
        <button type="button" className="rw-answer rw-quiet" data-testid="dismiss" onClick={close}>
          {words.close}
        </button>
      </div>
    </div>
  )
}
