const rl=require('readline').createInterface({input:process.stdin});
let me,peers=[];const log={},com={};const {randomUUID}=require('crypto');
const send=(d,b)=>process.stdout.write(JSON.stringify({src:me,dest:d,body:b})+"\n");
rl.on('line',l=>{const m=JSON.parse(l),b=m.body;const rep=x=>send(m.src,{...x,in_reply_to:b.msg_id});
 switch(b.type){case'init':me=b.node_id;peers=b.node_ids.filter(x=>x!==me);rep({type:'init_ok'});setInterval(()=>console.error('alive '+Date.now()+' '+randomUUID()),500);break;
 case'send':{const lead=[me,...peers].sort()[0];if(lead!==me){const id=randomUUID();pend.set(id,m);send(lead,{type:'fwd',id,key:b.key,msg:b.msg});break;}
  const L=log[b.key]??=[];L.push(b.msg);rep({type:'send_ok',offset:L.length-1});for(const p of peers)send(p,{type:'rep',key:b.key,off:L.length-1,msg:b.msg});break;}
 case'fwd':{const L=log[b.key]??=[];L.push(b.msg);for(const p of peers)send(p,{type:'rep',key:b.key,off:L.length-1,msg:b.msg});send(m.src,{type:'fwd_ok',id:b.id,off:L.length-1});break;}
 case'fwd_ok':{const o=pend.get(b.id);if(o){pend.delete(b.id);send(o.src,{type:'send_ok',offset:b.off,in_reply_to:o.body.msg_id});}break;}
 case'rep':{(log[b.key]??=[])[b.off]=b.msg;break;}
 case'poll':{const r={};for(const[k,o]of Object.entries(b.offsets)){const L=log[k]??[];r[k]=[];for(let i=o;i<L.length;i++){if(L[i]===undefined)break;r[k].push([i,L[i]]);}}rep({type:'poll_ok',msgs:r});break;}
 case'commit_offsets':for(const[k,o]of Object.entries(b.offsets))com[k]=Math.max(com[k]??0,o);rep({type:'commit_offsets_ok'});break;
 case'list_committed_offsets':{const r={};for(const k of b.keys)if(k in com)r[k]=com[k];rep({type:'list_committed_offsets_ok',offsets:r});break;}
 }});
const pend=new Map();
