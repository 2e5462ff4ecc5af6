import { type KeyboardEvent, useEffect, useId, useRef } from 'react'
import { Avatar } from './avatar.tsx'
import { Icon } from './icons.tsx'
import { classes, type PartProps } from './part.ts'
import { useCallUi, useWords } from './provider.tsx'
import { nameOf } from './words.ts'

/**
 * The call that rings here, as a modal dialog: the rest of the page is out of reach, Accept has the focus (Enter), and
 * Escape declines. The browser's own dialog keeps the focus inside and gives it back.
 */
export function IncomingDialog({ className }: PartProps) {
  const { call, phase, accept, decline, transfers } = useCallUi()
  const words = useWords()
  const dialog = useRef<HTMLDialogElement>(null)
  const first = useRef<HTMLButtonElement>(null)
  const id = useId()
  const shown = phase === 'incoming' ? call : undefined

  useEffect(() => {
    const element = dialog.current
    if (!shown || !element) return
    element.showModal()
    first.current?.focus()
    return () => element.close()
  }, [shown])

  if (!shown) return null
  const name = nameOf(shown)
  const origin = transfers?.origin(shown)
  const isVideo = shown.callType === 'video'
  const keyed = (event: KeyboardEvent) => {
    if (event.key !== 'Escape') return
    event.preventDefault()
    decline()
  }
  return (
    <dialog
      ref={dialog}
      role="alertdialog"
      className={classes('rw-incoming', className)}
      aria-labelledby={`${id}name`}
      aria-describedby={`${id}about`}
      data-testid="incoming"
      onKeyDown={keyed}
      // A back gesture closes a dialog without a key.
      onCancel={(event) => {
        event.preventDefault()
        decline()
      }}
    >
      <Avatar name={name} waits />
      <h2 id={`${id}name`}>{name}</h2>
      <p id={`${id}about`} data-testid="alert">
        {words.incoming(shown)}
        {origin && (
          <>
            <br />
            {words.transferredBy(nameOf({ peer: origin.by }))}
          </>
        )}
      </p>
      <div className="rw-answers">
        <button ref={first} type="button" className="rw-answer rw-green" data-testid="accept" onClick={() => accept()}>
          <Icon name="accept" />
          {words.accept}
        </button>
        <button type="button" className="rw-answer rw-red" data-testid="reject" onClick={() => decline()}>
          <Icon name="hangUp" />
          {words.decline}
        </button>
        {isVideo && (
          <button
            type="button"
            className="rw-answer rw-quiet"
            data-testid="accept-without-camera"
            onClick={() => accept({ video: false })}
          >
            <Icon name="videoOff" />
            {words.acceptWithoutCamera}
          </button>
        )}
      </div>
    </dialog>
  )
}
