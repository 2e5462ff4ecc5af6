import { expect, test } from 'bun:test'
import { someone } from '@ringwire/testkit/flows'
import { createManualClock, InProcessService } from '../../support/in-process.ts'
import { inviteOf, request } from '../../support/sessions.ts'

test('[TOK2] [WS5] connecting, the history and an invite agree to the millisecond on when a token is over', async () => {
  const clock = createManualClock()
  const service = await new InProcessService(clock).start()
  try {
    const { token, expires_at } = await service.issue({ user_id: someone('ann'), role: 'customer' })
    const lastMs = Date.parse(expires_at) - 1 - clock.now()
    const first = service.open(token)
    await first.next('auth.ok')
    const connect = async () => {
      const client = service.open(token)
      const { event, error } = await Promise.race([client.next('auth.ok'), client.next('call.error')])
      return error?.code ?? event
    }
    const history = async () => (await service.history(token)).error?.code ?? 200
    const invite = async () => {
      const answer = await request(first, 'call.invite', inviteOf(someone('ben')))
      return answer?.error?.code ?? answer?.event
    }
    clock.advance(lastMs)
    expect([await connect(), await history(), await invite()]).toEqual(['auth.ok', 200, 'call.invited'])
    clock.advance(1)
    expect([await connect(), await history(), await invite()]).toEqual(Array(3).fill('AUTH_TOKEN_INVALID'))
  } finally {
    await service.dispose()
  }
})
