import { useTransfer } from '@ringwire/client/react'
import type { Callee } from '@ringwire/client/types'
import { useEffect, useId, useRef, useState } from 'react'
import { classes, type PartProps } from './part.ts'
import { useCallUi, useWords } from './provider.tsx'
import { RoundButton } from './round-button.tsx'

/** Somebody, or a group, to whom the call may be transferred. */
export type TransferChoice = Callee & {
  readonly displayName?: string | undefined
  /** A few words beside the name, as "online". */
  readonly about?: string | undefined
}

export interface TransferButtonProps extends PartProps {
  /** The application's list for what the user has typed so far; '' at first. */
  search(text: string): readonly TransferChoice[] | Promise<readonly TransferChoice[]>
}

/** After the last key, in ms. */
const pauseMs = 150

/**
 * Opens a dialog to hand the other side of the call over: at once, or after asking. It stands among the controls:
 * `<CallStage controls={<TransferButton search={…} />} />`. Nothing without `transfers` of the provider.
 */
export function TransferButton({ className, search }: TransferButtonProps) {
  const { call, phase, other, transfers } = useCallUi()
  const words = useWords()
  const name = useTransfer(transfers, call)?.name
  const [isOpen, setOpen] = useState(false)
  const anchor = useRef<HTMLSpanElement>(null)
  const isAnswered = phase === 'live' || phase === 'connecting'
  // The call may end, or change, behind the dialog.
  // biome-ignore lint/correctness/useExhaustiveDependencies: of another call it begins anew
  useEffect(() => setOpen(false), [call])
  if (!transfers) return null
  return (
    <>
      <RoundButton
        icon="transfer"
        label={words.transfer}
        testId="transfer"
        aria-haspopup="dialog"
        disabled={!isAnswered || other !== undefined || name === 'asked' || name === 'ringing'}
        onClick={() => setOpen(true)}
      />
      <span ref={anchor} hidden />
      {isOpen && (
        <TransferDialog
          {...{ className, search }}
          close={() => setOpen(false)}
          // The button is off from now on, and would lose the focus.
          chosen={() => anchor.current?.closest('fieldset')?.focus({ preventScroll: true })}
        />
      )}
    </>
  )
}

interface TransferDialogProps extends TransferButtonProps {
  close(): void
  chosen(): void
}

function TransferDialog({ className, search, close, chosen }: TransferDialogProps) {
  const { transfer, consult, call } = useCallUi()
  const words = useWords()
  const dialog = useRef<HTMLDialogElement>(null)
  const [text, setText] = useState('')
  const found = useFound(search, text)
  const id = useId()
  useEffect(() => {
    const element = dialog.current
    element?.showModal()
    return () => element?.close()
  }, [])
  const choose = (act: () => void) => () => {
    act()
    dialog.current?.close()
    chosen()
  }
  return (
    <dialog
      ref={dialog}
      className={classes('rw-incoming rw-transfer', className)}
      aria-labelledby={id}
      data-testid="transfer-dialog"
      // A key of the dialog means nothing to the controls around it.
      onKeyDown={(event) => event.stopPropagation()}
      // React's StrictMode closes it for a moment.
      onClose={() => {
        if (!dialog.current?.open) close()
      }}
    >
      <h2 id={id}>{words.transfer}</h2>
      <input
        type="search"
        aria-label={words.findPerson}
        placeholder={words.findPerson}
        value={text}
        data-testid="transfer-search"
        onChange={({ currentTarget }) => setText(currentTarget.value)}
      />
      <ul className="rw-restorable" data-testid="transfer-choices">
        {found?.map((choice) => {
          const { about, ...target } = choice
          const { displayName: name = choice.userId ?? choice.group } = choice
          return (
            <li key={`${choice.role} ${choice.group ? 'group' : ''} ${choice.userId ?? choice.group}`}>
              <span>
                {name}
                {about && <small>{about}</small>}
              </span>
              <button
                type="button"
                className="rw-button"
                aria-label={words.askFirstOf(name)}
                data-testid="ask-first"
                onClick={choose(() => consult({ ...target, callType: call?.callType ?? 'audio' }))}
              >
                {words.askFirst}
              </button>
              <button
                type="button"
                className="rw-button"
                aria-label={words.transferTo(name)}
                data-testid="transfer-now"
                onClick={choose(() => transfer(target))}
              >
                {words.transferNow}
              </button>
            </li>
          )
        })}
      </ul>
      <p role="status">{found?.length === 0 && words.nobodyFound}</p>
      <button
        type="button"
        className="rw-answer rw-quiet"
        data-testid="close-dialog"
        onClick={() => dialog.current?.close()}
      >
        {words.close}
      </button>
    </dialog>
  )
}

/** Undefined until the application has answered. A search that is overtaken by the next one is not shown. */
function useFound(search: TransferButtonProps['search'], text: string): readonly TransferChoice[] | undefined {
  const [found, setFound] = useState<readonly TransferChoice[]>()
  const latest = useRef(search)
  latest.current = search
  useEffect(() => {
    let isOld = false
    const look = async () => {
      let list: readonly TransferChoice[] = []
      try {
        list = await latest.current(text.trim())
      } catch {
        // Nobody is found where the application's own search fails.
      }
      if (!isOld) setFound(list)
    }
    const timer = setTimeout(look, text ? pauseMs : 0)
    return () => {
      isOld = true
      clearTimeout(timer)
    }
  }, [text])
  return found
}
