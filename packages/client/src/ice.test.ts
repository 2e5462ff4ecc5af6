import { expect, test } from 'bun:test'
import { fakeClient, start, tokenFor, turn } from '../test/support/fake.ts'

const day = 86_400_000

for (const clockJump of [-day, 0, day]) {
  test(`[ICE1] credentials are fresh by the service's clock; the device's is ${clockJump / day} days off`, async () => {
    const ends = start / 1000 + 3_600
    const ice_servers = [{ urls: ['turn:t'], username: `${ends}:ann`, credential: 'c' }]
    const fake = fakeClient({ getToken: async () => ({ ...tokenFor(fake, 7_200_000), ice_servers }) })
    fake.clockJump = clockJump
    fake.client.connect()
    await turn()
    fake.socket.ok()
    expect(await fake.client.freshIceServers()).toEqual(ice_servers)
    await fake.pass(3_541_000)
    await expect(fake.client.freshIceServers()).rejects.toMatchObject({ code: 'REQUEST_FAILED' })
  })
}
