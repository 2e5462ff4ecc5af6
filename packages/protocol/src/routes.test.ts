import { expect, test } from 'bun:test'
import { endpoints } from './endpoints.ts'
import { routeAt, routes } from './routes.ts'

test('every endpoint is at its path, once for each method', () => {
  for (const { path, method } of Object.values(endpoints)) {
    const there = routeAt(path.replaceAll(/\{(\w+)\}/g, 'x'))
    expect(there?.route.path).toBe(path)
    expect(there?.route.endpoints.filter((each) => each.method === method)).toHaveLength(1)
  }
  expect(new Set(routes.map(({ path }) => path)).size).toBe(routes.length)
})

test('[SRV1] names in a path are decoded once', () => {
  const uuid = '/v1/server/calls/{call_uuid}'
  expect(routeAt('/v1/server/calls/a%2Fb%20%25')).toMatchObject({
    route: { path: uuid },
    params: { call_uuid: 'a/b %' },
  })
  expect(routeAt('/v1/server/calls/%252F')?.params).toEqual({ call_uuid: '%2F' })
  expect(routeAt('/v1/server/calls/%E2%82%AC')?.params).toEqual({ call_uuid: '€' })
})

test('nothing is where a name is blank, not UTF-8, or the path is longer or shorter', () => {
  for (const path of [
    '/v1/server/calls/',
    '/v1/server/calls/%20',
    '/v1/server/calls/%',
    '/v1/server/calls/%FF',
    '/v1/server/calls/a/b/c',
    '/v1/server/calls/a/',
    '//v1/server/calls/a',
    '/v1/server/__proto__',
    '/V1/server/calls/a',
    '',
    '/',
    '/'.repeat(10_000),
  ])
    expect([path.slice(0, 40), routeAt(path)]).toEqual([path.slice(0, 40), undefined])
})
