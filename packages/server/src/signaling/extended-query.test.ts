import { expect, test } from 'bun:test'
import { readExtendedQuery } from './extended-query.ts'

const read = (query: string) => readExtendedQuery(new URLSearchParams(query))

test('[EXT6] can= lists what an extended client understands; other names are ignored', () => {
  expect(read('ext=1&can=transfer,take')).toEqual({ resume: undefined, replied: 0, can: ['transfer', 'take'] })
  expect(read('ext=1&can=take%2C%20group,take,fly,')?.can).toEqual(['take', 'group'])
  expect(read('ext=1&can=take&resume=s1&epoch=e&seq=2')).toMatchObject({ can: ['take'], resume: { sessionId: 's1' } })
  for (const query of ['ext=1', 'ext=1&can=', 'ext=1&can=fly', 'ext=1&resume=s1&can=Take']) {
    expect(read(query)).not.toHaveProperty('can')
  }
  expect(read('can=take')).toBeUndefined()
})
