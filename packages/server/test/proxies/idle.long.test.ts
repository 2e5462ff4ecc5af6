import { expect, test } from 'bun:test'
import { freePort } from '@ringwire/testkit/ports'
import { Service } from '@ringwire/testkit/service'
import { TcpProxy } from '@ringwire/testkit/tcp-proxy'
import { tls } from './phone.ts'
import { startProxy } from './proxy.ts'

/** Longer than the service kept a connection before it had a setting, and shorter than nginx keeps its own (60 s). */
const pauseMs = 20_000

test('[HTTP2] connections that nginx keeps, with deploy/nginx.conf, are there after a pause', async () => {
  const service = await new Service().start()
  const nodes = [await new TcpProxy(service.url).start(), await new TcpProxy(service.url).start()] as const
  const port = await freePort()
  const proxy = await startProxy('nginx', { port, nodes: [nodes[0].url, nodes[1].url] })
  const ask = async () => (await fetch(`https://127.0.0.1:${port}/healthz`, { keepalive: false, tls })).status
  try {
    for (let n = 0; n < 4; n++) expect(await ask()).toBe(200)
    const links = nodes.flatMap((node) => node.links)
    const ended = Promise.race(links.map(({ serverGone }) => serverGone.then(() => 'the service closed one')))
    expect(await Promise.race([ended, Bun.sleep(pauseMs).then(() => 'all are there')])).toBe('all are there')
    for (let n = 0; n < 4; n++) expect(await ask()).toBe(200)
    // Each worker of nginx keeps its own, so another one may have opened more.
    expect(await Promise.race([ended, 'all are there'])).toBe('all are there')
  } finally {
    await proxy.stop()
    await Promise.all(nodes.map((node) => node.stop()))
    await service.dispose()
  }
}, 120_000)
