import type { CallRef, Participant } from '../../src/call/call.ts'
import { actorOf, durations, inviteCommand } from '../../src/call/decide.fixture.ts'
import { decide } from '../../src/call/decide.ts'
import { decideInvite } from '../../src/call/invite.ts'
import type { Erasures } from '../../src/participants/erasures.port.ts'
import { type AuditStore, auditIdAt, newAuditId } from '../../src/ports/audit.ts'
import { liveIn } from '../../src/ports/call-store.fixture.ts'
import type { CallStore } from '../../src/ports/call-store.ts'
import type { Devices } from '../../src/ports/devices.ts'
import type { Groups } from '../../src/ports/groups.ts'
import type { OnlineStore } from '../../src/ports/online.ts'
import type { Outbox } from '../../src/ports/outbox.ts'
import type { ProductStore } from '../../src/ports/product-store.ts'
import type { TimelineStore } from '../../src/ports/timeline.ts'
import { newDeliveryId, type WebhookStore } from '../../src/ports/webhooks.ts'
import { busy, endpointId, product, uuidOf } from '../support/million.ts'
import { attempted, endpoint } from './webhooks.ts'

/** The ports of a store that the walk uses. */
export interface Walked {
  readonly calls: CallStore
  readonly outbox: Outbox
  readonly products: ProductStore
  readonly devices: Devices
  readonly groups: Groups
  readonly audit: AuditStore
  readonly webhooks: WebhookStore
  readonly timeline: TimelineStore
  readonly online: OnlineStore
  readonly erasures: Erasures
  prune(before: number): Promise<number>
}

/** Calls every operation of every port, so that the store runs every statement; `some` has few calls. */
export async function useStores(stores: Walked, some: Participant): Promise<void> {
  await useCalls(stores, some)
  await useTransferredCall(stores, some)
  await useLists(stores, some)
  await usePeople(stores, some)
  await useGroups(stores.groups, some)
  await useAudit(stores.audit, some)
  await eraseAndPrune(stores, some)
  await useWebhooks(stores, some)
}

async function all<T>(pages: AsyncIterable<T>): Promise<void> {
  for await (const _ of pages) return
}

/** A call from its invite to its end. */
async function useCall(stores: Walked, product: string, some: Participant): Promise<CallRef> {
  const ann = actorOf({ ...some, product, userId: 'ann' })
  const ben = actorOf({ ...some, product, userId: 'ben' })
  const ref = { product, callUuid: crypto.randomUUID() }
  await stores.calls.invite(ann.participant, ben.participant, ref.callUuid, (situation) =>
    decideInvite(situation, inviteCommand(ann, ben.participant, ref.callUuid), Date.now()),
  )
  for (const type of ['accept', 'connected', 'end'] as const) {
    const command = type === 'end' ? { type, actor: ben, reason: null } : { type, actor: ben }
    await stores.calls.transition(ref, (call) => decide(call, command, Date.now(), durations))
  }
  return ref
}

async function useCalls(stores: Walked, some: Participant): Promise<void> {
  const { calls, outbox, webhooks } = stores
  // The erasure of a person changes the deliveries that tell of that person's calls.
  await webhooks.addEndpoint(endpoint({ id: `we_heard_${some.userId}`, product }))
  await webhooks.refresh()
  const ref = await useCall(stores, product, some)
  await useCall(stores, 'unheard', some)
  await useGroupCalls(stores, some)
  await calls.load({ product, callUuid: uuidOf(7) })
  await calls.beginning(product, uuidOf(7).slice(0, 8), 2)
  await calls.stepsAfter(ref, 0)
  await calls.liveCallsOf(busy)
  await calls.inCall([busy, some])
  await calls.lastAnswered([busy, some])
  await calls.dueRings(0, Date.now(), 500)
  await liveIn(calls)
  await all(calls.overPages(Date.now() - 120_000))
  await all(calls.overPages(0))
  await calls.seen(ref)
  await calls.tryWrite()
  await outbox.leftOf(ref)
  const left = await outbox.claim(50)
  await outbox.oldest()
  const rows = [1, ...left.map(({ row }) => row)]
  await outbox.release(rows, 0)
  await outbox.remove(rows)
}

/** Calls to a group: nobody answers the first, a member answers the second, and the third ends before the turn of a member. */
async function useGroupCalls({ calls }: Walked, some: Participant): Promise<void> {
  const ann = actorOf({ ...some, product, userId: 'ann' })
  const ben = actorOf({ ...some, product, userId: 'ben' })
  const now = Date.now
  const group = { name: 'all', members: [some.userId, 'ben'], isBusy: false }
  const cancel = { type: 'cancel', actor: ann, reason: null } as const
  const answered = [
    { type: 'accept', actor: ben },
    { type: 'end', actor: ann, reason: null },
  ] as const
  for (const [of, commands] of [
    [group, [cancel]],
    [group, answered],
    [{ ...group, memberRingMs: 15_000 }, [cancel]],
  ] as const) {
    const ref = { product, callUuid: crypto.randomUUID() }
    const command = { ...inviteCommand(ann, { ...some, userId: '' }, ref.callUuid), group: of }
    await calls.invite(ann.participant, ann.participant, ref.callUuid, (situation) =>
      decideInvite(situation, command, now()),
    )
    await calls.liveCallsOf(some)
    for (const each of commands) {
      const { steps } = await calls.transition(ref, (call) => decide(call, each, now(), durations))
      if (steps.length === 0) throw new Error(`the ${each.type} of a call to a group is refused`)
    }
  }
}

/** A call of two others that somebody transferred, and that is over [XFER1]. */
async function useTransferredCall({ calls }: Walked, { userId, role }: Participant): Promise<void> {
  const ann = actorOf({ product, role, userId: 'ann' })
  const ref = { product, callUuid: crypto.randomUUID() }
  const command = inviteCommand(ann, { product, role, userId: 'ben' }, ref.callUuid)
  const transferred = { from: crypto.randomUUID(), by: { userId, role, displayName: userId }, firstStartedAt: 1 }
  await calls.invite(ann.participant, ann.participant, ref.callUuid, (situation) => {
    const { steps } = decideInvite(situation, command, Date.now())
    return { steps: steps.map(({ call, event }) => ({ call: { ...call, transferred }, event })) }
  })
  await calls.transition(ref, (call) => decide(call, { type: 'stop', note: null }, Date.now(), durations))
}

async function useLists(stores: Walked, some: Participant): Promise<void> {
  const { calls } = stores
  for (const after of [undefined, { startedAt: Date.now() - 40 * 86_400_000, callUuid: '' }]) {
    for (const participant of [busy, some]) await calls.history({ participant, limit: 100, after })
    for (const participant of [undefined, busy]) {
      for (const statuses of [undefined, ['missed'], ['ringing', 'accepted', 'connected']] as const)
        await calls.list({ product, participant, statuses, since: 0, limit: 100, after })
    }
  }
}

async function useWebhooks(stores: Walked, some: Participant): Promise<void> {
  const { webhooks } = stores
  const one = endpoint({ id: `we_new_${some.userId}`, product })
  await webhooks.addEndpoint(one)
  await webhooks.refresh()
  await webhooks.endpointsOf(product)
  await webhooks.changeEndpoint(product, one.id, { enabled: true })
  const made = { endpointId: one.id, subject: 's', version: 1, type: 'webhook.test', body: '{}', createdAt: Date.now() }
  const ids = [1, 2].map((n) => newDeliveryId(Date.now() + n))
  await webhooks.add(ids.map((id) => ({ ...made, id })))
  const wanted = new Map([one.id, endpointId].map((id) => [id, 10]))
  await webhooks.claim(wanted)
  await webhooks.settle(ids.map((id) => attempted(id, { outcome: 'failed' })))
  await webhooks.due()
  await webhooks.stuck()
  await webhooks.putOff([one.id, endpointId])
  for (const status of [undefined, 'failed', 'pending', 'delivered'] as const) {
    for (const before of [undefined, newDeliveryId(Date.now())])
      await webhooks.deliveries({ endpointId, status, limit: 100, before })
  }
  await webhooks.retry(one.id, ids[0] ?? '')
  await webhooks.removeEndpoint(product, one.id)
  await webhooks.removeEndpoint(product, endpointId)
  for (const before of [0, Date.now() - 86_400_000, Date.now()]) await webhooks.prune(before, before)
}

async function usePeople(stores: Walked, some: Participant): Promise<void> {
  const { timeline, devices, products, online, erasures } = stores
  const call = { product, callUuid: uuidOf(77) }
  const seen = { ...call, id: 'late', at: Date.now(), what: 'rung', side: 'caller', detail: {} } as const
  await timeline.add([seen])
  await timeline.of(call)
  await timeline.refusedOf(busy, 100)
  for (const before of [0, Date.now()]) await timeline.pruneRefused(before)
  const device = { participant: some, deviceId: 'phone', address: { platform: 'fcm', token: 't' } } as const
  await devices.put({ ...device, registeredAt: Date.now() })
  await devices.of(some, Date.now())
  await devices.ofMembers(some, [some.userId], Date.now())
  await devices.forget(some, 'phone')
  await devices.forgetAll(some)
  const key = { keyId: 'k', secretHash: new Uint8Array(32), products: [product], origin: 'cli' } as const
  await products.putKey(key, 1)
  await products.rotateKey('k', new Uint8Array(32).fill(1), 10, 2)
  await products.setDisabled('k', true, 3)
  await products.findKey('k', 1)
  await products.listKeys(1)
  await products.changeSettings(product, { busy: 'allow' })
  await products.settings(product)
  await products.listSettings()
  await products.policies()
  await products.revoke('somebody', Date.now(), Date.now())
  await products.revocations(Date.now())
  for (const before of [0, Date.now()]) await products.pruneRevocations(before)
  await online.write('one', [{ participant: some, comes: true }], 1)
  await online.nodes()
  await online.of('one')
  await online.erase(some)
  await erasures.add('somebody', { devices: 1, timelineEntries: 1, calls: 1, webhookDeliveries: 1 })
  await erasures.counted('somebody')
  await erasures.forget('somebody')
}

async function useGroups(groups: Groups, some: Participant): Promise<void> {
  const group = { product, role: some.role, name: 'walked' }
  const members = [some.userId, ...Array.from({ length: 499 }, (_, n) => `member-${n}`)]
  await groups.put({ ...group, strategy: 'all', memberRingMs: 15_000, ringMs: 45_000, members })
  await groups.get(group)
  await groups.list({ product, role: '', name: '' }, 101)
  for (const member of [busy, some]) await groups.of(member)
  await groups.forget(some)
  await groups.forget(busy)
  await groups.remove(group)
}

async function useAudit(audit: AuditStore, some: Participant): Promise<void> {
  const { role, userId } = some
  const entry = { actor: { kind: 'cli', name: 'root' }, action: 'key.create', subject: 'k', detail: {} } as const
  await audit.add({ ...entry, id: newAuditId(Date.now()), product, participant: { role, userId } })
  for (const of of [undefined, product]) await audit.list({ product: of, before: undefined, limit: 101 })
  await audit.about(some, { before: undefined, limit: 100 })
  await audit.forget(some)
  await audit.prune(auditIdAt(Date.now() + 1))
}

/** Stops the erasure of the busy participant after one step, and completes those of participants with few calls. */
async function eraseAndPrune(stores: Walked, some: Participant): Promise<void> {
  const isOver = () => Promise.reject(new Error('enough'))
  await stores.timeline.forgetParticipant(busy, isOver).catch(() => {})
  await stores.calls.erase(busy, isOver).catch(() => {})
  for (const participant of [some, { ...some, userId: 'ann' }]) {
    await stores.timeline.forgetParticipant(participant)
    await stores.calls.erase(participant)
    await stores.webhooks.erase(participant)
  }
  for (const ms of [0, Date.now() - 89.9 * 86_400_000]) await stores.prune(ms)
}
