import { expect } from 'bun:test'
import type { ExtendedClient } from '@ringwire/testkit/extended-client'
import { someone } from '@ringwire/testkit/flows'
import type { Service } from '@ringwire/testkit/service'
import { about, answeredCall, connectExtended } from './extended-flows.ts'

export const transfer = { can: 'transfer' }
/** Of an agent who may call, and so transfer to, other agents. */
export const roles = { allowed_peer_role: 'agent' }
export const agent = (user_id: string, display_name: string) => ({ ...roles, user_id, role: 'agent', display_name })

/** Ann calls Ben, who answers, and transfers her to Eva. All three are extended; Ann and Ben understand a transfer. */
export interface Three {
  readonly ann: ExtendedClient
  readonly ben: ExtendedClient
  readonly eva: ExtendedClient
  readonly ids: { readonly ann: string; readonly ben: string; readonly eva: string }
  readonly first: string
}

/** `at`: where each of them connects. */
export async function threeOf(service: Service, { product = 'shop', at = [service, service, service] } = {}) {
  const ids = { ann: someone('ann'), ben: someone('ben'), eva: someone('eva') }
  const customer = { user_id: ids.ann, role: 'customer', device_id: 'desk', display_name: 'Ann' }
  const [one = service, two = service, three = service] = at
  const [ann, ben, eva] = await Promise.all([
    connectExtended(one, { ...customer, product }, transfer),
    connectExtended(two, { ...agent(ids.ben, 'Ben'), product }, transfer),
    connectExtended(three, { ...agent(ids.eva, 'Eva'), product }, transfer),
  ])
  const first = await answeredCall({ caller: ann, callee: ben, callerId: ids.ann, calleeId: ids.ben })
  return { ann, ben, eva, ids, first } satisfies Three
}

export const toEva = ({ first, ids }: Three) => ({ call_uuid: first, to_role: 'agent', to_user_id: ids.eva })

/** Ben transfers; it rings at Eva, and Ann has heard of it. */
export async function transferred(three: Three): Promise<string> {
  const reply = await three.ben.request('call.transfer', toEva(three))
  expect(reply.event).toBe('call.transfer_started')
  const next = reply.data.new_call_uuid
  await ringsFor(three, next)
  return next
}

export async function ringsFor({ ann, eva }: Three, next: string): Promise<void> {
  await Promise.all([eva.next('call.ringing', about(next)), ann.next('call.transferring', newCall(next))])
}

export const namesOf = ({ pushes }: ExtendedClient, ...calls: string[]) =>
  pushes.filter(({ data }) => calls.includes(data.call_uuid)).map(({ event, data }) => [event, data.call_uuid])
/** Of a message about the first call, which new one it is about. */
export const newCall = (next: string) => (message: { data: { new_call_uuid?: string } }) =>
  message.data.new_call_uuid === next
