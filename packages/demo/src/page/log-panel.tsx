import { memo, type ReactNode, useLayoutEffect, useRef, useState } from 'react'
import { Icon } from './icons.tsx'
import { copyText, type EnvelopeEntry, type Family, families, type Log, type LogEntry } from './log.ts'
import { useStore } from './store.ts'
import { clockText } from './wording.ts'

/**
 * Everything that passed, newest last. The families are also the filter. A panel that is hidden keeps its opened entries.
 */
export function LogPanel({ log, isShown }: { log: Log; isShown: boolean }) {
  const entries = useStore(log.entries)
  const [hidden, setHidden] = useState<ReadonlySet<Family>>(new Set())
  const [copied, setCopied] = useState('')
  const shown = entries.filter((entry) => 'note' in entry || !entry.family || !hidden.has(entry.family))
  const list = useStayAtEnd(shown, isShown)

  const toggle = (family: Family) => {
    const next = new Set(hidden)
    if (!next.delete(family)) next.add(family)
    setHidden(next)
  }
  const copy = () =>
    navigator.clipboard.writeText(copyText(shown)).then(
      () => setCopied('Copied'),
      () => setCopied('Not copied'),
    )
  return (
    <section id="log" className="panel log" aria-labelledby="log-title" hidden={!isShown} data-testid="log">
      <div className="log-head">
        <h2 id="log-title">Signaling log</h2>
        <span className="copied" role="status" onAnimationEnd={() => setCopied('')}>
          {copied && <span>{copied}</span>}
        </span>
        <button
          type="button"
          className="small-button"
          title="Copy what is shown as JSON, without tokens, descriptions and addresses"
          data-testid="log-copy"
          onClick={copy}
        >
          Copy
        </button>
        <button type="button" className="small-button" data-testid="log-clear" onClick={log.clear}>
          Clear
        </button>
      </div>
      <fieldset className="filter" aria-label="Shown in the log">
        {families.map((family) => (
          <button
            key={family}
            type="button"
            aria-pressed={!hidden.has(family)}
            data-family={family}
            data-testid={`log-${family}`}
            onClick={() => toggle(family)}
          >
            <i />
            {family}
          </button>
        ))}
      </fieldset>
      <div className="log-box">
        {/* biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls can be scrolled with the keyboard */}
        <ol ref={list} className="log-list" aria-label="Envelopes, oldest first" tabIndex={0} data-testid="log-list">
          {shown.map((entry) =>
            'note' in entry ? <Note key={entry.id} entry={entry} /> : <Entry key={entry.id} entry={entry} />,
          )}
        </ol>
      </div>
    </section>
  )
}

/** A list that was scrolled to its end stays there when it grows. */
function useStayAtEnd(shown: readonly LogEntry[], isShown: boolean) {
  const list = useRef<HTMLOListElement>(null)
  const wasAtEnd = useRef(true)
  useLayoutEffect(() => {
    const element = list.current
    if (!element) return
    if (wasAtEnd.current) element.scrollTop = element.scrollHeight
    const scrolled = () => {
      // A hidden list has no height, so its position says nothing.
      if (element.clientHeight === 0) return
      wasAtEnd.current = element.scrollHeight - element.scrollTop - element.clientHeight < 40
    }
    element.addEventListener('scroll', scrolled, { passive: true })
    return () => element.removeEventListener('scroll', scrolled)
  }, [shown.length, shown.at(-1), isShown])
  return list
}

function Note({ entry }: { entry: Extract<LogEntry, { note: string }> }) {
  return (
    <li className="log-note">
      <span>{entry.note}</span>
      <time>{clockText(entry.at)}</time>
    </li>
  )
}

const Entry = memo(function Entry({ entry }: { entry: EnvelopeEntry }) {
  const { direction, event, family, about, envelopes } = entry
  const [isOpen, setOpen] = useState(false)
  return (
    <li
      className="log-entry"
      data-direction={direction}
      data-event={event}
      data-family={family}
      data-count={envelopes.length}
    >
      <details onToggle={({ currentTarget }) => setOpen(currentTarget.open)}>
        <summary>
          <span className="log-arrow" title={direction}>
            <Icon name={direction === 'sent' ? 'up' : 'down'} />
          </span>
          <span className="sr-only">{`${direction} `}</span>
          <span className="log-event">{event}</span>
          {envelopes.length > 1 && <span className="log-count">{`×${envelopes.length}`}</span>}
          <span className="log-about" title={about}>
            {about}
          </span>
          <time>{clockText(entry.at)}</time>
        </summary>
        {isOpen && <Json value={envelopes.length > 1 ? envelopes : envelopes[0]} />}
      </details>
    </li>
  )
})

/** JSON in colours, made of nothing but text: no part of a message becomes markup. */
function Json({ value }: { value: unknown }) {
  const json = JSON.stringify(value, null, 2)
  const pattern = /("(?:\\.|[^"\\])*")(\s*:)?|\b(true|false|null)\b|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g
  const parts: ReactNode[] = []
  let at = 0
  for (const match of json.matchAll(pattern)) {
    const kind = match[2] ? 'key' : match[1] ? 'string' : 'plain'
    const text = match[1] ?? match[0]
    parts.push(json.slice(at, match.index))
    parts.push(
      <span key={match.index} className={`json-${kind}`}>
        {text}
      </span>,
    )
    at = match.index + text.length
  }
  parts.push(json.slice(at))
  // biome-ignore lint/a11y/noNoninteractiveTabindex: what scrolls can be scrolled with the keyboard
  return <pre tabIndex={0}>{parts}</pre>
}
