-- For wrk: asks the questions of a file, one JSON body a line, and counts what was not answered with 200.
-- wrk -s questions.lua URL -- FILE SEED
local threads, bodies = {}, {}
refused, first, sent = 0, "", 0

function setup(thread)
   thread:set("number", #threads)
   table.insert(threads, thread)
end

function init(args)
   for line in io.lines(args[1]) do bodies[#bodies + 1] = line end
   math.randomseed(tonumber(args[2]) + number)
end

function request()
   local body = bodies[math.random(#bodies)]
   return wrk.format("POST", "/v1/query", {["Content-Type"] = "application/json"}, body)
end

function response(status, headers, body)
   if status ~= 200 then
      refused = refused + 1
      if first == "" then first = status .. " " .. body:sub(1, 200) end
   end
end

function done(summary, latency, requests)
   local refused, first = 0, ""
   for _, thread in ipairs(threads) do
      refused = refused + thread:get("refused")
      if first == "" then first = thread:get("first") end
   end
   local errors = summary.errors
   io.stderr:write(string.format(
      '{"requests": %d, "seconds": %.3f, "p50": %.3f, "p90": %.3f, "p99": %.3f, "max": %.3f, "refused": %d, "broken": %d, "late": %d}\n',
      summary.requests, summary.duration / 1e6, latency:percentile(50) / 1000, latency:percentile(90) / 1000,
      latency:percentile(99) / 1000, latency.max / 1000, refused,
      errors.connect + errors.read + errors.write, errors.timeout))
   if first ~= "" then io.stderr:write("first refusal: " .. first .. "\n") end
end
