// The data that the pages show: who is there, who waits, past calls. Pages listen with EventSource and get the whole of it
// anew.
import { agents, personOf } from './people.mjs'

/** How often the desk asks Ringwire who is there, while anybody looks. In ms. */
const lookMs = 2_000
const mostShown = 20

export function createDesk({ ringwire, book, hours, queue }) {
  const watchers = new Map()
  let present = new Map()
  let reachable = true

  async function look() {
    queue.seen(new Set([...watchers.values()].map(({ person }) => person.user_id)))
    try {
      const states = agents.map(async ({ role, user_id }) => [
        user_id,
        stateOf(await ringwire.participants.get({ role, user_id })),
      ])
      present = new Map(await Promise.all(states))
      reachable = true
    } catch (error) {
      if (reachable) console.error(`Ringwire cannot be asked who is there: ${error.code ?? error.message}`)
      reachable = false
    }
    tell()
  }

  /** Agents see who waits, customers at which place they are. */
  function queueOf({ role, user_id }) {
    const waiting = queue.list()
    if (role === 'customer') return { place: waiting.findIndex(({ userId }) => userId === user_id) + 1 }
    const shownOf = ({ userId, since }) => {
      const { display_name, context_id } = personOf({ role: 'customer', user_id: userId })
      return { user_id: userId, display_name, context_id, since }
    }
    return { queue: waiting.map(shownOf) }
  }

  /** Agents see every call, customers their own. */
  function viewOf({ role, user_id }) {
    const isMine = ({ caller, callee }) => [caller, callee].some((it) => it.user_id === user_id && it.role === role)
    const visible = role === 'agent' ? () => true : isMine
    return {
      reachable,
      hours: { isOpen: hours.isOpen(), text: hours.text() },
      ...queueOf({ role, user_id }),
      agents: agents.map(({ user_id, display_name, about }) => ({
        ...{ user_id, display_name, about },
        state: present.get(user_id) ?? 'away',
      })),
      live: book.live().filter(visible).map(shown),
      history: book.over().filter(visible).slice(0, mostShown).map(shown),
    }
  }

  function tell() {
    for (const [response, watcher] of watchers) {
      const text = JSON.stringify(viewOf(watcher.person))
      if (text !== watcher.told) response.write(`data: ${text}\n\n`)
      watcher.told = text
    }
  }

  setInterval(() => watchers.size > 0 && look(), lookMs).unref()
  return {
    watch(person, response) {
      response.writeHead(200, { 'Content-Type': 'text/event-stream', 'Cache-Control': 'no-store' })
      watchers.set(response, { person, told: '' })
      response.on('close', () => watchers.delete(response))
      void look()
    },
    /** If Ringwire does not answer, somebody may be. */
    async isAnybodyFree() {
      await look()
      return !reachable || [...present.values()].some((state) => state === 'here' || state === 'asleep')
    },
    /** A webhook came: other people may be busy now. */
    changed() {
      tell()
      void look()
    },
  }
}

/** `asleep`: the page is closed, and a call wakes it. */
function stateOf({ online, devices, live_calls }) {
  if (live_calls.some(({ status }) => status !== 'ringing')) return 'busy'
  if (online) return 'here'
  return devices.length > 0 ? 'asleep' : 'away'
}

/** The name of a callee is known to Ringwire once it has answered, and here always. */
const named = (party) => ({
  ...party,
  // Nobody of the group has answered.
  display_name: personOf(party)?.display_name ?? 'Support',
})
const shown = ({ call_uuid, status, end_reason, caller, callee, context_id, started_at, accepted_at, ended_at }) => ({
  ...{ call_uuid, status, end_reason, caller: named(caller), callee: named(callee), context_id },
  ...{ started_at, accepted_at, ended_at },
})
