import { rings } from './line-call.ts'
import { classes, type PartProps } from './part.ts'
import { useCallUi, useContextOfCall } from './provider.tsx'
import { nameOf } from './words.ts'

/** The second call, with `busy="wait"`: one that rings during the first one, or the one that is on hold [WAIT1]. */
export function SecondCall({ className }: PartProps) {
  const { call, phase, other, holdAndAnswer, endAndAnswer, declineOther, swap, connectBoth } = useCallUi()
  const { line, words } = useContextOfCall()
  if (!call || phase === 'incoming' || !other) return null
  const name = nameOf(other.call)
  const isWaiting = rings(other.call)
  const text = isWaiting ? words.waiting(name) : words.otherOnHold(name)
  const button = (testId: string, label: string, onClick: () => void, colour = 'rw-quiet') => (
    <button type="button" className={`rw-answer ${colour}`} data-testid={testId} onClick={onClick}>
      {label}
    </button>
  )
  return (
    // biome-ignore lint/a11y/useSemanticElements: a fieldset is for fields
    <div
      role="group"
      className={classes('rw-second', className)}
      aria-label={text}
      data-testid="second-call"
      data-call={other.call.callUuid}
    >
      <p>{text}</p>
      {/* A call that still rings at the other side cannot be put on hold. */}
      {isWaiting &&
        phase !== 'calling' &&
        button('hold-and-answer', words.holdAndAnswer, () => holdAndAnswer(), 'rw-green')}
      {isWaiting && button('end-and-answer', words.endAndAnswer, () => endAndAnswer())}
      {isWaiting && button('decline-second', words.decline, () => declineOther(), 'rw-red')}
      {!isWaiting && phase !== 'calling' && button('swap', words.swap, swap)}
      {/* TransferButton asks before it connects two who do not know each other. */}
      {!isWaiting &&
        phase !== 'calling' &&
        line.isConsulted() &&
        button('connect-both', words.connectBoth, connectBoth, 'rw-green')}
    </div>
  )
}
