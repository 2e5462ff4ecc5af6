import { type ReactNode, type RefObject, useEffect, useId } from 'react'
import { classes, type PartProps } from './part.ts'
import { useWords } from './provider.tsx'

export interface ModalProps extends PartProps {
  dialog: RefObject<HTMLDialogElement | null>
  title: string
  testId: string
  /** It was closed, by the user or by `close()` of the element. */
  closed(): void
  children?: ReactNode
}

/** A dialog over the call that is open while it is mounted. The browser's own keeps the focus inside and gives it back. */
export function Modal({ className, dialog, title, testId, closed, children }: ModalProps) {
  const words = useWords()
  const id = useId()
  useEffect(() => {
    const element = dialog.current
    element?.showModal()
    // A key that opened it may still be held: it must not press the button that acts.
    element?.querySelector<HTMLElement>('input, .rw-quiet')?.focus()
    return () => element?.close()
  }, [dialog])
  return (
    <dialog
      ref={dialog}
      className={classes('rw-incoming rw-transfer', className)}
      aria-labelledby={id}
      data-testid={testId}
      // A key of the dialog means nothing to the controls around it.
      onKeyDown={(event) => event.stopPropagation()}
      // React's StrictMode closes it for a moment.
      onClose={() => {
        if (!dialog.current?.open) closed()
      }}
    >
      <h2 id={id}>{title}</h2>
      {children}
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
