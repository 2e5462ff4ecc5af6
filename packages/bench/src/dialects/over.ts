// Base clients of Ringwire that reach it in another way than over plain TCP on this machine.
import type { Way } from '../connection.ts'
import { SERVICE_ADDRESS } from '../network.ts'
import { mintTokens, productKey } from '../tokens.ts'
import type { Dialect } from './dialect.ts'
import { ringwire } from './ringwire.ts'

const over = (way: Way): Dialect => ({
  ...ringwire,
  credentials: (port, ids) => mintTokens(port, ids, undefined, productKey, way),
  way,
})

export const secure = over({ isSecure: true })
export const distant = over({ hostname: SERVICE_ADDRESS })
