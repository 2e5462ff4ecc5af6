import { useTransfer } from '@ringwire/client/react'
import { useEffect, useRef, useState } from 'react'
import { Modal } from './modal.tsx'
import type { PartProps } from './part.ts'
import { useCallUi, useContextOfCall } from './provider.tsx'
import { RoundButton } from './round-button.tsx'
import { type TransferChoice, TransferDialog } from './transfer-dialog.tsx'
import { Unanswered } from './unanswered.tsx'
import { nameOf } from './words.ts'

export interface TransferButtonProps extends PartProps {
  /** The application's list for what the user has typed so far; '' at first. */
  search(text: string): readonly TransferChoice[] | Promise<readonly TransferChoice[]>
}

/**
 * Opens a dialog to hand the other side of the call over: at once, or after asking. It stands among the controls:
 * `<CallStage controls={<TransferButton search={…} />} />`. Nothing without `transfers` of the provider.
 *
 * What else a user needs who transfers comes with it: of two calls that have nothing to do with each other it asks whether to
 * connect them, it asks before hanging up stops a transfer, and it says what became of somebody who was asked first.
 */
export function TransferButton({ className, search }: TransferButtonProps) {
  const { call, phase, other, transfers, connectBoth } = useCallUi()
  const { line, words } = useContextOfCall()
  const transfer = useTransfer(transfers, call)
  const [open, setOpen] = useState<'transfer' | 'connect' | 'hangUp'>()
  const anchor = useRef<HTMLSpanElement>(null)
  const isAnswered = phase === 'live' || phase === 'connecting'
  const isRinging = transfer?.name === 'asked' || transfer?.name === 'ringing'
  const areTwo = isAnswered && other?.media !== undefined
  const closed = () => setOpen(undefined)
  // The call that the dialog is about may end or change while it is open.
  // biome-ignore lint/correctness/useExhaustiveDependencies: of another call it begins anew
  useEffect(closed, [call, other?.call, isRinging])
  useEffect(() => {
    if (!isRinging || transfer?.call) return
    line.guard(() => setOpen('hangUp'))
    return () => line.guard(undefined)
  }, [line, isRinging, transfer?.call])
  if (!transfers || !call) return null
  const name = nameOf(call)
  return (
    <>
      <RoundButton
        icon="transfer"
        label={areTwo ? words.connectBoth : words.transfer}
        testId="transfer"
        aria-haspopup="dialog"
        disabled={!isAnswered || isRinging || (other && (!areTwo || line.isConsulted()))}
        onClick={() => setOpen(areTwo ? 'connect' : 'transfer')}
      />
      <span ref={anchor} hidden />
      {open === 'transfer' && (
        <TransferDialog
          {...{ className, search, closed }}
          // The button is off from now on, and would lose the focus.
          chosen={() => anchor.current?.closest('fieldset')?.focus({ preventScroll: true })}
        />
      )}
      {open === 'connect' && other && (
        <Question
          {...{ className, closed }}
          text={words.connectQuestion(nameOf(other.call), name)}
          yes={words.connectBoth}
          act={connectBoth}
        />
      )}
      {open === 'hangUp' && (
        <Question
          {...{ className, closed }}
          text={words.hangUpQuestion(name)}
          yes={words.hangUp}
          act={() => void call.end()}
        />
      )}
      {!isRinging && <Unanswered />}
    </>
  )
}

interface QuestionProps extends PartProps {
  text: string
  /** The words of the button that acts. */
  yes: string
  act(): void
  closed(): void
}

function Question({ className, text, yes, act, closed }: QuestionProps) {
  const dialog = useRef<HTMLDialogElement>(null)
  return (
    <Modal {...{ className, dialog, closed }} title={text} testId="question">
      <button
        type="button"
        className="rw-answer rw-red"
        data-testid="yes"
        onClick={() => {
          dialog.current?.close()
          act()
        }}
      >
        {yes}
      </button>
    </Modal>
  )
}
