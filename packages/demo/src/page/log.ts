import { icon, make } from './dom.ts'

const maxEntries = 400
const tokenShape = /eyJ[\w-]+\.[\w-]+\.[\w-]+/g

/** The signal that a person most wants to see without opening the entry. */
function summary(envelope: Record<string, unknown>): string {
  const data = (envelope.data ?? {}) as Record<string, unknown>
  const error = envelope.error as { code?: unknown } | undefined
  if (error?.code) return String(error.code)
  const candidate = data.candidate as { candidate?: string } | undefined
  if (candidate?.candidate) return candidate.candidate.match(/typ (\w+)/)?.[1] ?? ''
  const status = [data.status, data.reason].filter((word) => typeof word === 'string')
  return status.length > 0 ? status.join(' · ') : String(data.display_name ?? data.callee_user_id ?? '')
}

/** JSON in colours, built from text nodes: nothing of a message becomes markup. */
function colouredJson(value: unknown): HTMLElement {
  const pre = make('pre', { tabindex: '0' })
  const json = JSON.stringify(value, null, 2)
  const pattern = /("(?:\\.|[^"\\])*")(\s*:)?|\b(true|false|null)\b|-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g
  let at = 0
  for (const match of json.matchAll(pattern)) {
    pre.append(json.slice(at, match.index))
    const kind = match[2] ? 'key' : match[1] ? 'string' : 'plain'
    pre.append(make('span', { class: `json-${kind}` }, match[1] ?? match[0]), match[2] ?? '')
    at = match.index + match[0].length
  }
  pre.append(json.slice(at))
  return pre
}

/** Shows every envelope as it passes. Tokens travel outside of envelopes; one that got into one would still be hidden. */
export function createLogPanel(list: HTMLElement, clearButton: HTMLElement) {
  clearButton.addEventListener('click', () => list.replaceChildren())

  function add(entry: HTMLElement): void {
    const atEnd = list.scrollHeight - list.scrollTop - list.clientHeight < 40
    list.append(entry)
    while (list.childElementCount > maxEntries) list.firstElementChild?.remove()
    if (atEnd) list.scrollTop = list.scrollHeight
  }

  function time(): HTMLElement {
    const now = new Date()
    const two = (value: number) => String(value).padStart(2, '0')
    const clock = `${two(now.getHours())}:${two(now.getMinutes())}:${two(now.getSeconds())}`
    return make('time', {}, `${clock}.${String(now.getMilliseconds()).padStart(3, '0')}`)
  }

  function envelope(direction: 'sent' | 'received', message: string): void {
    let value: Record<string, unknown> = { unreadable: true }
    try {
      value = JSON.parse(message.replace(tokenShape, '(token)'))
    } catch {
      // Shown as unreadable.
    }
    const event = typeof value.event === 'string' ? value.event : 'unreadable'
    const family = event === 'call.error' ? 'error' : (event.split('.')[0] ?? '')
    const head = make(
      'summary',
      {},
      make('span', { class: 'log-arrow', title: direction }, icon(direction === 'sent' ? 'up' : 'down')),
      make('span', { class: 'sr-only' }, `${direction} `),
      make('span', { class: 'log-event' }, event),
      make('span', { class: 'log-about' }, summary(value)),
      time(),
    )
    const details = make('details', {}, head)
    const attributes = { class: 'log-entry', 'data-direction': direction, 'data-event': event, 'data-family': family }
    details.append(colouredJson(value))
    add(make('li', attributes, details))
  }

  return {
    sent: (message: string) => envelope('sent', message),
    received: (message: string) => envelope('received', message),
    note(message: string): void {
      add(make('li', { class: 'log-note' }, make('span', {}, message), time()))
    },
  }
}

export type LogPanel = ReturnType<typeof createLogPanel>
