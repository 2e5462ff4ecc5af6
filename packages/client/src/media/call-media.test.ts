import { expect, test } from 'bun:test'
import { onlineFake } from '../environment.fixture.ts'
import { createCallMedia } from './call-media.ts'
import type { MediaEnvironment } from './types.ts'

const streams = class {
  getTracks() {
    return []
  }
} as unknown as MediaEnvironment['MediaStream']

const none = { MediaStream: streams } as MediaEnvironment

test('media that cannot be made leaves the call to whoever tries again', async () => {
  const { client } = await onlineFake()
  const call = client.call({ userId: 'agent', role: 'agent', callType: 'audio' })
  const broken = { environment: {} as MediaEnvironment }
  expect(() => createCallMedia(call, broken)).toThrow(TypeError)
  const media = createCallMedia(call, { environment: none })
  expect(() => call.claimSignals()).toThrow('Something else negotiates')
  media.close()
})

test('media that is closed has no device', async () => {
  const { client } = await onlineFake()
  const call = client.call({ userId: 'agent', role: 'agent', callType: 'audio' })
  const media = createCallMedia(call, { environment: none })
  const failed = media.start().catch(({ code }) => code)
  expect(media.state.slots.audio).toEqual({ name: 'opening' })
  media.close()
  expect(media.state).toMatchObject({ name: 'closed', slots: { audio: { name: 'empty' } }, errors: {} })
  expect(await failed).toBe('CLOSED')
})
