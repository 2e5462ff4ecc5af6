/** @jsxImportSource preact */
import type { CallView } from '@ringwire/protocol/backend'
import type { ComponentChildren } from 'preact'
import { useEffect, useRef, useState } from 'preact/hooks'
import { textOf } from './ask.ts'
import { linkTo } from './place.ts'

/** The title of a view. It takes the focus, so that a screen reader says where one is. */
export function Head({ title, children }: { title: string; children?: ComponentChildren }) {
  const heading = useRef<HTMLHeadingElement>(null)
  useEffect(() => {
    heading.current?.focus({ preventScroll: true })
    document.title = `${title} – Ringwire`
  }, [title])
  return (
    <div class="head">
      <h1 tabIndex={-1} ref={heading}>
        {title}
      </h1>
      {children}
    </div>
  )
}

export function Problem({ text }: { text: string | undefined }) {
  if (text === undefined) return null
  return (
    <p class="note" data-tone="bad" role="alert">
      {text}
    </p>
  )
}

const tones: Readonly<Record<string, string>> = {
  ...{ ringing: 'warn', accepted: 'good', connected: 'good' },
  ...{ missed: 'bad', busy: 'warn', rejected: 'warn', cancelled: 'warn' },
}

export function Status({ call: { status } }: { call: Pick<CallView, 'status'> }) {
  const isLive = ['ringing', 'accepted', 'connected'].includes(status)
  return (
    <span class="badge" data-tone={tones[status]} data-live={isLive ? '' : undefined}>
      {status}
    </span>
  )
}

interface PersonProps {
  readonly product: string
  readonly who: {
    readonly user_id: string | null
    readonly role: string
    readonly display_name?: string | null
    readonly group?: string
  }
}

/** A participant, with a link to all that is known of it. */
export function Person({ product, who: { user_id: id, role, display_name: name, group } }: PersonProps) {
  if (id === null) return <span>group {group}</span>
  return (
    <span>
      <a href={linkTo(['people', product, role, id])}>
        {role}/{id}
      </a>
      {name && name !== id && <span class="soft"> {name}</span>}
      {group && <span class="soft"> of group {group}</span>}
    </span>
  )
}

interface DoProps {
  readonly label: string
  /** The question before it is done. */
  readonly question: string
  readonly isDangerous?: boolean
  readonly act: () => Promise<unknown>
  readonly testId?: string
  /** The text that has to be typed before it is done. */
  readonly typed?: string
  /** Fields of what is done. */
  readonly children?: ComponentChildren
  /** Whether the fields say enough. */
  readonly isReady?: boolean
  /** What the button in the dialog says, if not the label. */
  readonly confirm?: string
  /** Told each time that the dialog opens. */
  readonly onOpen?: () => void
}

/** A button that asks first, and says what went wrong. */
export function Do({
  label,
  question,
  isDangerous = true,
  act,
  testId,
  typed = '',
  children,
  isReady = true,
  confirm = label,
  onOpen,
}: DoProps) {
  const dialog = useRef<HTMLDialogElement>(null)
  const [problem, setProblem] = useState<string>()
  const [isBusy, setBusy] = useState(false)
  const [text, setText] = useState('')

  async function go(): Promise<void> {
    setBusy(true)
    setProblem(undefined)
    try {
      await act()
      dialog.current?.close()
      setText('')
    } catch (error) {
      setProblem(textOf(error))
    }
    setBusy(false)
  }

  return (
    <>
      <button
        type="button"
        class={isDangerous ? 'danger' : ''}
        data-testid={testId}
        onClick={() => {
          setProblem(undefined)
          onOpen?.()
          dialog.current?.showModal()
        }}
      >
        {label}
      </button>
      <dialog ref={dialog} aria-label={label}>
        <div class="dialog">
          <p>{question}</p>
          {children}
          {typed !== '' && (
            <label>
              Type {typed} to confirm
              <input value={text} data-testid="typed" onInput={({ currentTarget }) => setText(currentTarget.value)} />
            </label>
          )}
          <Problem text={problem} />
          <div class="row">
            <button
              type="button"
              class={isDangerous ? 'danger' : 'main'}
              disabled={isBusy || !isReady || text !== typed}
              data-testid="confirm"
              onClick={() => void go()}
            >
              {confirm}
            </button>
            <button type="button" onClick={() => dialog.current?.close()}>
              Not now
            </button>
          </div>
        </div>
      </dialog>
    </>
  )
}

interface ChoiceProps<T extends string> {
  readonly label: string
  readonly value: T
  readonly values: readonly T[]
  /** What is shown for each value, if not the value. */
  readonly words?: Readonly<Record<T, string>>
  readonly onChange: (value: T) => void
  readonly testId: string
}

/** One of several values. */
export function Choice<T extends string>({ label, value, values, words, onChange, testId }: ChoiceProps<T>) {
  return (
    <label>
      {label}
      <select value={value} data-testid={testId} onChange={({ currentTarget }) => onChange(currentTarget.value as T)}>
        {values.map((each) => (
          <option key={each} value={each}>
            {words?.[each] ?? each}
          </option>
        ))}
      </select>
    </label>
  )
}

/** A part that may be wider than the screen. It takes the focus, so that the arrow keys move it. */
export function Scroll({ name, children }: { name: string; children: ComponentChildren }) {
  return (
    // biome-ignore lint/a11y/noNoninteractiveTabindex: a keyboard scrolls only what has the focus.
    <section class="scroll" aria-label={name} tabIndex={0}>
      {children}
    </section>
  )
}

/** A secret, the one time that it is shown. */
export function Secret({ text }: { text: string | undefined }) {
  if (text === undefined) return null
  return (
    <p class="note" role="status" data-testid="secret">
      The secret is shown this once: <code>{text}</code>
    </p>
  )
}
