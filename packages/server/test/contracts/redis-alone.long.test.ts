import { registerRedisContract } from './redis-contract.ts'
import { openOne } from './redis-harness.ts'

registerRedisContract('redis', openOne)
