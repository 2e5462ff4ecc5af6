// What the pages show: who is there, who waits, what was. Pages listen with EventSource and get the whole of it anew.
import { agents, people } from './people.mjs'

/** So often Ringwire is asked who is there, while anybody looks. In ms. */
const lookMs = 2_000
const mostShown = 20

export function createDesk({ ringwire, book }) {
  const watchers = new Map()
  let present = new Map()
  let reachable = true

  /** `asleep`: the page is closed, and a call wakes it. */
  function stateOf({ online, devices, live_calls }) {
    if (live_calls.some(({ status }) => status !== 'ringing')) return 'busy'
    if (online) return 'here'
    return devices.length > 0 ? 'asleep' : 'away'
  }

  async function look() {
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

  /** The name of a callee is known to Ringwire once it has answered, and here always. */
  const named = (party) => ({
    ...party,
    display_name: people.find(({ user_id, role }) => user_id === party.user_id && role === party.role)?.display_name,
  })
  const shown = ({ call_uuid, status, caller, callee, context_id, started_at, accepted_at, ended_at }) => ({
    ...{ call_uuid, status, caller: named(caller), callee: named(callee), context_id },
    ...{ started_at, accepted_at, ended_at },
  })

  /** Agents see every call, customers their own. */
  function viewOf({ role, user_id }) {
    const isMine = ({ caller, callee }) => [caller, callee].some((it) => it.user_id === user_id && it.role === role)
    const visible = role === 'agent' ? () => true : isMine
    return {
      reachable,
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
    /** A webhook came: who is busy may have changed, too. */
    changed() {
      tell()
      void look()
    },
  }
}
