// From `call.invite` to `call.ringing` in one product, while people of another product invite, whose backend decides on
// that.
import { participantId } from '../candidate.ts'
import type { Client, Pair } from '../dialects/dialect.ts'
import { members } from '../dialects/dialect.ts'
import { ringwire } from '../dialects/ringwire.ts'
import { mintTokens } from '../tokens.ts'
import { atATime, closeClients, openClient, openPairs, within } from './clients.ts'
import type { HookJob, Prepared } from './job.ts'
import { paceOf } from './pace.ts'
import { ringAgain } from './ring.ts'

const WITHIN_MS = 20_000

export async function prepareHook({ target, pair, others }: HookJob): Promise<Prepared> {
  const [{ caller, callee }] = (await within(WITHIN_MS, 'Connecting', openPairs(ringwire, target, pair, 1))) as [Pair]
  const clients: Client[] = []
  if (others !== undefined) await within(WITHIN_MS, 'Connecting', connect(others))

  async function connect({ key, callers }: NonNullable<HookJob['others']>): Promise<void> {
    const ids = Array.from({ length: callers }, (_, i) => participantId(i, 'caller'))
    const credentials = await mintTokens(target.port, ids, undefined, key)
    await atATime(callers, 32, async (i) => {
      clients[i] = await openClient(ringwire, target.port, ids[i]!, credentials[i]!)
    })
  }

  return {
    async run(shape) {
      const until = performance.now() + shape.warmupMs + shape.measureMs
      const refused = inviteUntil(until, clients, others?.perSecond)
      const result = await ringAgain(caller, callee, target, shape)
      return { ...result, refused: await within(WITHIN_MS, 'The refusals', refused) }
    },
    release: () => closeClients([caller, callee, ...clients]),
  }
}

/** Invites at a steady pace, by each caller in turn; resolves with their number once every one of them was refused. */
async function inviteUntil(until: number, callers: readonly Client[], perSecond: number | undefined): Promise<number> {
  if (callers.length === 0) return 0
  const pace = paceOf(perSecond)
  const refusals: Promise<void>[] = []
  for (let n = 0; performance.now() < until; n++) {
    refusals.push(inviteInVain(callers[n % callers.length]!))
    await pace(n + 1)
  }
  await Promise.all(refusals)
  return refusals.length
}

async function inviteInVain({ id, socket }: Client): Promise<void> {
  const data = { callee_user_id: id.replace('caller', 'callee'), callee_role: 'callee' }
  socket.send(JSON.stringify({ event: 'call.invite', data }))
  const text = await socket.next()
  const { error } = members(JSON.parse(text))
  if (members(error).code !== 'CALL_REFUSED') throw new Error(`An invite in vain: ${text}`)
}
